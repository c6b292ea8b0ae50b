/**
 * The picture of the first page: errors of RBM 3 by the number of mini-batches that each layer is given, at both sizes of
 * images, and ten digits as a stack gives them back. book/first_page.py makes the data: for each size a line for each
 * method, and a picture with a row of digits for the originals, CD, and each point of the lines.
 */
{
  const root = document.getElementById("first-page");
  const { batches: slider, method: chosen } = root.elements; // the slider has the logarithm of what is chosen, as the axes
  const [svg, sentence, name] = ["svg", "p", ".chosen"].map((selector) => root.querySelector(selector));
  const data = JSON.parse(document.getElementById("first-page-data").textContent);

  const SIZES = { small: 7, large: 28 }; // pixels
  const METHODS = { start: "no search", "lea-mvd": "LEA-MVD", printed: "LEA-MVD as printed" };
  const MARKS = {
    start: "M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0", "lea-mvd": "M-5,0L0,-5L5,0L0,5Z", printed: "M-4,-4H4V4H-4Z",
  };
  const PANELS = [
    { over: "CD", of: "CD", ticks: [0.1, 1, 10], ends: [0.012, 60] },
    { over: "constant", of: "a constant image", ticks: [0.01, 0.1, 1, 10, 100], ends: [0.01, 300] },
  ];
  const SHORT = { ...METHODS, printed: "as printed" };
  // Where a word stands: at which mini-batches, how many pixels below its curve or level, and which of its ends is there.
  const WORDS = {
    CD: {
      small: { start: [60, 18, "middle"], "lea-mvd": [1, -14], printed: [10, -9], CD: [600, -12, "end"] },
      large: { start: [60, -9], CD: [1, -5] },
    },
    constant: {
      small: {
        start: [30, -9], "lea-mvd": [1, 23], printed: [10, 17], constant: [1, -5], CD: [600, 14, "end"],
      },
      large: { start: [30, -9], constant: [600, -5, "end"], CD: [1, -5] },
    },
  };
  const BATCHES = data.small.start.batches;
  const TICKS = [1, 10, 100];
  const [LEFT, RIGHT, TOP, HEIGHT, APART, GAP] = [44, 8, 44, 124, 160, 12]; // pixels; panels are so far apart
  const BLOCK = TOP + APART + HEIGHT + 24; // the panels of a size, and the numbers below them
  const NARROW = 420; // where the sizes stand below each other
  const THUMB = 18; // of the slider, as in first_page.css

  /** What takes a number between two ends to a place between two others, by its logarithm. */
  const logarithmic = ([low, high], [from, to]) => {
    const pixels = (to - from) / Math.log(high / low);
    return (value) => from + pixels * Math.log(value / low);
  };

  /** The place of the number of mini-batches whose logarithm is nearest to the slider's. */
  const position = () => {
    const away = BATCHES.map((k) => Math.abs(Math.log(k) - slider.valueAsNumber));
    return away.indexOf(Math.min(...away));
  };
  const batches = () => BATCHES[position()];

  const text = (x, y, words, side = "") => `<text x="${x}" y="${y}" class="${side}">${words}</text>`;

  /** A word at its place of a curve or level, whose errors are `height`. */
  const word = (words, [k, below, side], x, height) => text(x(k) + ({ end: 4, middle: 0 }[side] ?? -4), height(k) + below, words, side);

  /** The curve of a method, its marks and its name. */
  const curve = (method, { batches, ...line }, over, place, x, y) => {
    const errors = line[over];
    const places = errors.map((error, i) => [x(batches[i]), y(error)]);
    const marks = places.map((at) => `<path class="mark" transform="translate(${at})" d="${MARKS[method]}"/>`);
    const name = word(SHORT[method], place, x, (k) => y(errors[batches.indexOf(k)]));
    return `<g class="curve ${method}"><path d="M${places.join("L")}"/>${marks.join("")}${name}</g>`;
  };

  /** A panel of a size; the chosen method's curve lies on top. */
  const panel = ({ over, of, ticks, ends }, k, size, { left, right, first }) => {
    const [top, bottom] = [TOP + k * APART, TOP + k * APART + HEIGHT];
    const [x, y] = [across(left, right), logarithmic(ends, [bottom, top])];
    const words = WORDS[over][size];
    const levels = over === "CD" ? { CD: 1 } : { constant: 1, CD: data[size].cd };
    const lines = Object.values(levels).map((error) => `M${left},${y(error)}H${right}`).join("");
    const methods = Object.keys(METHODS).filter((method) => method in data[size]);
    methods.sort((a, b) => (a === chosen.value) - (b === chosen.value));
    const named = [text(left, top - 8, `error of RBM 3 over ${of}’s`), ...ticks.map((tick) => text(left - 6, y(tick) + 5, tick, "end tick"))];
    const drawn = [
      ...(first ? named : []),
      `<path class="axis" d="M${left},${top}V${bottom}H${right}${lines}"/>`,
      ...Object.entries(levels).map(([name, error]) => word(name, words[name], x, () => y(error))),
      ...methods.map((method) => curve(method, data[size][method], over, words[method], x, y)),
    ];
    return `<g class="${size}">${drawn.join("")}</g>`;
  };

  const across = (left, right) => logarithmic([BATCHES[0], BATCHES.at(-1)], [left + 10, right - 10]);

  /** Where the panels of each size begin and end, how far down they are, and whether they have names of their own. */
  const frames = (width) => {
    const right = width - RIGHT;
    const small = { left: LEFT, right, down: 0, first: true };
    if (width < NARROW) return { small, large: { ...small, down: BLOCK } };
    const wide = (right - LEFT - GAP) / 2;
    return { small: { ...small, right: LEFT + wide }, large: { left: right - wide, right, down: 0, first: false } };
  };

  /** Draw the charts, and put the slider below the first, or below both where these stand below each other. */
  const drawCharts = () => {
    const { width } = svg.getBoundingClientRect();
    if (width === 0) return; // as on paper
    const sizes = frames(width);
    const height = BLOCK + sizes.large.down;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    svg.innerHTML = Object.entries(sizes).map(([size, frame]) => {
      const x = across(frame.left, frame.right);
      const place = x(batches());
      const rule = `<path class="rule" d="M${place},${TOP}v${HEIGHT}M${place},${TOP + APART}v${HEIGHT}"/>`;
      const title = text((frame.left + frame.right) / 2, 16, `${SIZES[size]}×${SIZES[size]} pixels`, "middle title");
      const below = TICKS.map((tick) => text(x(tick), TOP + APART + HEIGHT + 18, tick, "middle"));
      const panels = PANELS.map((one, k) => panel(one, k, size, frame));
      return `<g transform="translate(0,${frame.down})">${[rule, title, ...panels, ...below].join("")}</g>`;
    }).join("");
    const x = across(sizes.small.left, sizes.small.right);
    const [first, last] = [x(BATCHES[0]), x(BATCHES.at(-1))];
    slider.setAttribute("style", `margin-left: ${first - THUMB / 2}px; width: ${last - first + THUMB}px`);
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
    const k = batches();
    slider.value = Math.log(k);
    const after = k === 1 ? "1 mini-batch" : `${k} mini-batches`;
    sentence.textContent = `${after}. ${said("small", k)}. ${said("large", k)}.`;
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
    const kept = new URLSearchParams({ k: batches(), method: chosen.value });
    history.replaceState(null, "", `#${kept}`);
    show();
  };
  root.oninput = choose;

  /** An arrow key takes the next number of mini-batches. */
  slider.onkeydown = (event) => {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = BATCHES[position() + by];
    if (next) slider.value = Math.log(next);
    choose();
  };

  /** A click takes the nearest number of mini-batches. */
  svg.onclick = ({ clientX }) => {
    const { left, width } = svg.getBoundingClientRect();
    const places = Object.values(frames(width)).flatMap((frame) => BATCHES.map(across(frame.left, frame.right)));
    const away = places.map((place) => Math.abs(place - (clientX - left)));
    slider.value = Math.log(BATCHES[away.indexOf(Math.min(...away)) % BATCHES.length]);
    choose();
  };

  const asked = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  if (BATCHES.includes(Number(asked.k))) slider.value = Math.log(asked.k);
  if (asked.method in METHODS) chosen.value = asked.method;
  new ResizeObserver(drawCharts).observe(svg);
  show();
}
