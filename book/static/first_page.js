/**
 * The picture of the first page: errors of RBM 3 by the number of mini-batches that each layer is given, at both sizes of
 * images, and ten digits as a stack gives them back. book/first_page.py makes the data: for each size a line for each
 * method, and a picture with a row of digits for the originals, CD, and each point of the lines.
 */
{
  const root = document.getElementById("first-page");
  const { batches: slider, method: chosen } = root.elements;
  const [svg, sentence, name] = ["svg", "p", ".chosen"].map((selector) => root.querySelector(selector));
  const data = JSON.parse(document.getElementById("first-page-data").textContent);

  const SIZES = { small: 7, large: 28 }; // pixels
  const METHODS = { start: "no search", "lea-mvd": "LEA-MVD", printed: "LEA-MVD as printed" };
  const MARKS = {
    start: "M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0", "lea-mvd": "M-5,0L0,-5L5,0L0,5Z", printed: "M-4,-4H4V4H-4Z",
  };
  const PANELS = [
    { over: "CD", of: "CD", ticks: [0.1, 1, 10], ends: [0.03, 60] },
    { over: "constant", of: "a constant image", ticks: [0.01, 0.1, 1, 10, 100], ends: [0.01, 300] },
  ];
  const BATCHES = data.small.start.batches;
  const TICKS = [1, 10, 100];
  const [LEFT, RIGHT, TOP, HEIGHT, APART, GAP] = [44, 8, 44, 116, 152, 12]; // pixels; panels are so far apart

  /** What takes a number between two ends to a place between two others, by its logarithm. */
  const logarithmic = ([low, high], [from, to]) => {
    const pixels = (to - from) / Math.log(high / low);
    return (value) => from + pixels * Math.log(value / low);
  };

  const text = (x, y, words, side = "") => `<text x="${x}" y="${y}" class="${side}">${words}</text>`;

  /** The curve of a method and its marks. */
  const curve = (method, line, over, x, y) => {
    const places = line[over].map((error, i) => [x(line.batches[i]), y(error)]);
    const marks = places.map((place) => `<path class="mark" transform="translate(${place})" d="${MARKS[method]}"/>`);
    return `<g class="curve ${method}"><path d="M${places.join("L")}"/>${marks.join("")}</g>`;
  };

  /** A panel of a size between two places; the chosen method's curve lies on top. */
  const panel = ({ over, of, ticks, ends }, k, size, [left, right]) => {
    const [top, bottom] = [TOP + k * APART, TOP + k * APART + HEIGHT];
    const [x, y] = [across([left, right]), logarithmic(ends, [bottom, top])];
    const lines = over === "CD" ? [["CD", 1, 1]] : [["constant", 1, 1], ["CD", data[size].cd, 7]]; // word, error, place
    const level = lines.map(([, error]) => `M${left},${y(error)}H${right}`).join("");
    const methods = Object.keys(METHODS).filter((method) => method in data[size]);
    methods.sort((a, b) => (a === chosen.value) - (b === chosen.value));
    const first = [text(LEFT, top - 8, `error of RBM 3 over ${of}’s`), ...ticks.map((tick) => text(LEFT - 6, y(tick) + 5, tick, "end"))];
    const drawn = [
      ...(size === "small" ? first : []),
      `<path class="axis" d="M${left},${top}V${bottom}H${right}${level}"/>`,
      ...lines.map(([word, error, at]) => text(x(at) - 6, y(error) - 4, word)),
      ...methods.map((method) => curve(method, data[size][method], over, x, y)),
    ];
    return `<g class="${size}">${drawn.join("")}</g>`;
  };

  const across = ([left, right]) => logarithmic([BATCHES[0], BATCHES.at(-1)], [left + 10, right - 10]);

  /** Where the panels of each size begin and end. */
  const columns = (width) => {
    const wide = (width - LEFT - RIGHT - GAP) / 2;
    return { small: [LEFT, LEFT + wide], large: [LEFT + wide + GAP, width - RIGHT] };
  };

  const drawCharts = () => {
    const { width, height } = svg.getBoundingClientRect();
    if (width === 0) return; // as on paper
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.innerHTML = Object.entries(columns(width)).map(([size, ends]) => {
      const x = across(ends);
      const place = x(BATCHES[slider.value]);
      const rule = `<path class="rule" d="M${place},${TOP}v${HEIGHT}M${place},${TOP + APART}v${HEIGHT}"/>`;
      const title = text((ends[0] + ends[1]) / 2, 16, `${SIZES[size]}×${SIZES[size]} pixels`, "middle title");
      const below = TICKS.map((tick) => text(x(tick), TOP + APART + HEIGHT + 18, tick, "middle"));
      return [rule, title, ...PANELS.map((one, k) => panel(one, k, size, ends)), ...below].join("");
    }).join("");
  };

  /** Draw a row of a size's digits; none where there is none. */
  const drawDigits = (canvas, size, row) => {
    const ink = canvas.getContext("2d");
    ink.clearRect(0, 0, canvas.width, canvas.height);
    const { width, height } = canvas;
    if (row >= 0) ink.drawImage(pictures[size], 0, row * height, width, height, 0, 0, width, height);
  };

  /** The row of digits of a method after some mini-batches, -1 where it was not run from there. */
  const rowOf = (size, method, k) => {
    const i = data[size][method]?.batches.indexOf(k) ?? -1;
    const before = Object.keys(METHODS).slice(0, Object.keys(METHODS).indexOf(method));
    return i < 0 ? -1 : before.reduce((row, one) => row + (data[size][one]?.batches.length ?? 0), 2 + i);
  };

  const short = (ratio) => (ratio < 1 ? ratio.toFixed(2) : String(Number(ratio.toPrecision(2))));

  /** The errors of the chosen method at a size, in words. */
  const said = (size, k) => {
    const line = data[size][chosen.value];
    const i = line?.batches.indexOf(k) ?? -1;
    const pixels = `${SIZES[size]}×${SIZES[size]} pixels: `;
    if (i < 0) return `${pixels}not run`;
    const over = `${short(line.CD[i])} ${line.CD[i] < 1 ? "of" : "times"} CD’s error`;
    return `${pixels}${over}, ${short(line.constant[i])} ${line.constant[i] < 1 ? "of" : "times"} a constant image’s`;
  };

  const show = () => {
    const k = BATCHES[slider.valueAsNumber];
    const batches = k === 1 ? "1 mini-batch" : `${k} mini-batches`;
    sentence.textContent = `${batches}. ${said("small", k)}. ${said("large", k)}.`;
    slider.setAttribute("aria-valuetext", sentence.textContent);
    name.textContent = METHODS[chosen.value];
    root.querySelectorAll("canvas").forEach((canvas, at) => {
      const size = Object.keys(SIZES)[at % 2];
      drawDigits(canvas, size, at < 4 ? Math.floor(at / 2) : rowOf(size, chosen.value, k));
    });
    drawCharts();
  };

  const pictures = {};
  for (const size in SIZES) {
    pictures[size] = new Image();
    pictures[size].onload = show;
    pictures[size].src = data[size].digits;
  }

  root.hidden = false;
  document.documentElement.classList.add("first-page-runs"); // hides the static figure

  /** Show what is chosen, and keep it in the page's address. */
  const choose = () => {
    const kept = new URLSearchParams({ k: BATCHES[slider.valueAsNumber], method: chosen.value });
    history.replaceState(null, "", `#${kept}`);
    show();
  };
  root.oninput = choose;

  /** A click takes the nearest number of mini-batches. */
  svg.onclick = ({ clientX }) => {
    const { left, width } = svg.getBoundingClientRect();
    const places = Object.values(columns(width)).flatMap((ends) => BATCHES.map(across(ends)));
    const away = places.map((place) => Math.abs(place - (clientX - left)));
    slider.value = away.indexOf(Math.min(...away)) % BATCHES.length;
    choose();
  };

  const asked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (BATCHES.includes(Number(asked.k))) slider.value = BATCHES.indexOf(Number(asked.k));
  if (asked.method in METHODS) chosen.value = asked.method;
  new ResizeObserver(drawCharts).observe(svg);
  show();
}
