/**
 * The picture of the first page: errors of RBM 3 by the number of mini-batches that each layer is given, and ten digits
 * as a stack gives them back. book/first_page.py makes the data: curves of each method, and grays of its digits.
 */
{
  const root = document.getElementById("first-page");
  const { batches: slider, method: chosen } = root.elements;
  const [svg, sentence, name] = ["svg", "p", "span:nth-of-type(3)"].map((selector) => root.querySelector(selector));
  const data = JSON.parse(document.getElementById("first-page-data").textContent);
  const grays = Uint8Array.from(atob(data.digits), (letter) => letter.charCodeAt(0));

  const METHODS = { start: "no search", "lea-mvd": "LEA-MVD" };
  const MARKS = { start: "M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0", "lea-mvd": "M-5,0L0,-5L5,0L0,5Z" };
  const PANELS = [
    { over: "CD", of: "CD", ticks: [0.03, 0.1, 0.3, 1, 3], ends: [0.03, 3], lines: [["CD", 1, 20]] },
    {
      over: "constant", of: "a constant image", ticks: [0.1, 1, 10, 100], ends: [0.1, 300],
      lines: [["constant", 1, 1], ["CD", data.CD, 20]], // word, error, and the mini-batches where the word begins
    },
  ];
  const TICKS = [1, 3, 10, 30, 100, 600];
  const [LEFT, RIGHT, TOP, HEIGHT, APART] = [44, 16, 24, 116, 152]; // pixels; panels are so far apart

  /** What takes a number between two ends to a place between two others, by its logarithm. */
  const logarithmic = ([low, high], [from, to]) => {
    const pixels = (to - from) / Math.log(high / low);
    return (value) => from + pixels * Math.log(value / low);
  };

  const text = (x, y, words, side = "") => `<text x="${x}" y="${y}" class="${side}">${words}</text>`;

  /** The curve of a method and its marks. */
  const curve = (method, over, x, y) => {
    const places = data[method][over].map((error, i) => [x(data.batches[i]), y(error)]);
    const marks = places.map((place) => `<path class="mark" transform="translate(${place})" d="${MARKS[method]}"/>`);
    return `<g class="curve ${method}"><path d="M${places.join("L")}"/>${marks.join("")}</g>`;
  };

  /** A panel; the chosen method's curve lies on top. */
  const panel = ({ over, of, ticks, ends, lines }, k, x, right) => {
    const [top, bottom] = [TOP + k * APART, TOP + k * APART + HEIGHT];
    const y = logarithmic(ends, [bottom, top]);
    const across = lines.map(([, error]) => `M${LEFT},${y(error)}H${right}`).join("");
    const methods = Object.keys(METHODS).sort((a, b) => (a === chosen.value) - (b === chosen.value));
    const drawn = [
      text(LEFT, top - 8, `error of RBM 3 over ${of}’s`),
      `<path class="axis" d="M${LEFT},${top}V${bottom}H${right}${across}"/>`,
      ...ticks.map((tick) => text(LEFT - 6, y(tick) + 5, tick, "end")),
      ...lines.map(([word, error, at]) => text(x(at), y(error) - 4, word)),
      ...methods.map((method) => curve(method, over, x, y)),
    ];
    return `<g>${drawn.join("")}</g>`;
  };

  const drawCharts = () => {
    const { width, height } = svg.getBoundingClientRect();
    if (width === 0) return; // as on paper
    const right = width - RIGHT;
    const x = logarithmic([data.batches[0], data.batches.at(-1)], [LEFT + 12, right - 12]);
    const rule = `<path class="rule" d="M${x(data.batches[slider.value])},${TOP}v${APART + HEIGHT}"/>`;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const below = TICKS.map((tick) => text(x(tick), TOP + APART + HEIGHT + 18, tick, "middle"));
    svg.innerHTML = [rule, ...PANELS.map((one, k) => panel(one, k, x, right)), ...below].join("");
  };

  /** Ten digits of 7×7 pixels, a column apart. */
  const drawDigits = (canvas, row) => {
    const ink = canvas.getContext("2d");
    ink.clearRect(0, 0, canvas.width, canvas.height);
    grays.subarray(490 * row, 490 * (row + 1)).forEach((gray, i) => {
      ink.fillStyle = `rgb(0 0 0 / ${gray / 255})`;
      ink.fillRect(8 * Math.floor(i / 49) + (i % 7), Math.floor((i % 49) / 7), 1, 1);
    });
  };

  const short = (ratio) => (ratio < 1 ? ratio.toFixed(2) : String(Number(ratio.toPrecision(2))));

  const show = () => {
    const [i, method] = [slider.valueAsNumber, chosen.value];
    const [k, { CD, constant }] = [data.batches[i], data[method]];
    const overCD = `${short(CD[i])} ${CD[i] < 1 ? "of" : "times"} CD’s error`;
    const batches = k === 1 ? "1 mini-batch" : `${k} mini-batches`;
    sentence.textContent = `${batches}: ${overCD}, ${short(constant[i])} times a constant image’s`;
    slider.setAttribute("aria-valuetext", sentence.textContent);
    name.textContent = METHODS[method];
    const searched = Object.keys(METHODS).indexOf(method);
    root.querySelectorAll("canvas").forEach((canvas, row) => drawDigits(canvas, row < 2 ? row : 2 + 9 * searched + i));
    drawCharts();
  };

  root.hidden = false;
  document.documentElement.classList.add("first-page-runs"); // hides the static figure
  root.oninput = show;
  new ResizeObserver(drawCharts).observe(svg);
  show();
}
