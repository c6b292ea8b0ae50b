/**
 * The page of the playground: what its controls say, the run that follows from it, the drawing, and the page's address.
 *
 * The form is the only place that holds settings; a view is its content and nothing else. The names of its controls are
 * those of `DEFAULTS`. book/playground.md joins this file with the others in one script, behind d3: a page that is opened
 * from a disk may import no module.
 */

const root = document.getElementById("playground");
const form = root.querySelector("form");
const control = form.elements;
const status = root.querySelector("[role=status]");
const more = root.querySelector("details"); // settings of which presets change some
const defaults = [...new FormData(form)];
const usual = Object.fromEntries(defaults);
const presets = JSON.parse(document.getElementById("playground-presets").textContent);

const HALF_WIDTH = 4; // of the whole view
const GRID = 90; // cells of the contours a side
const LEVELS = d3.range(1, 13).map((k) => (k / 13) ** 1.5); // shares of the plot's area below each contour

// ---- settings

/** What the controls say, numbers as numbers. */
function settings() {
  const entries = [...new FormData(form)].map(([name, value]) => [name, isNaN(value) ? value : Number(value)]);
  return Object.fromEntries(entries);
}

/** Set the controls to what a fragment says, the others to their defaults; all of them where it makes no sense. */
function load(fragment) {
  for (const [name, value] of [...defaults, ...new URLSearchParams(fragment)]) {
    const named = control.namedItem(name);
    if (named) named.value = value;
  }
  limitElites();
  if (!form.checkValidity()) load("");
  if ([...more.querySelectorAll("select")].some(({ name, value }) => value !== usual[name])) more.open = true;
}

/** At least one individual of a population is drawn anew. */
function limitElites() {
  control.n_elite.max = control.population_size.value - 1;
}

/** Show what the page's address says: a preset, a view, or nothing, for which the opening has what can be seen best. */
function open() {
  const fragment = location.hash.slice(1);
  const preset = fragment.replace(/^play-/, "directions-");
  if (fragment === "") load(new URLSearchParams(presets.opening));
  else load(preset in presets ? new URLSearchParams({ ...presets[preset], preset }) : fragment);
  play(false);
  if (fragment) root.scrollIntoView();
}

// ---- the run

let run = { key: null };

/** The states of all generations up to the one that the settings name; those that are known are not computed again. */
function states({ generation, view, speed, preset, ...searched }) {
  const key = JSON.stringify(searched);
  if (key !== run.key) {
    const draw = draws(searched.seed);
    const f = FUNCTIONS[searched.function];
    run = { key, known: [first(f, [searched.x1, searched.x2], searched, draw)] };
    run.step = () => run.known.push(next(f, searched, draw, run.known.at(-1)));
  }
  while (run.known.length < generation) run.step();
  return run.known.slice(0, generation);
}

// ---- drawing

const length = (vector) => Math.hypot(...vector);
const short = (value) => d3.format(value !== 0 && Math.abs(value) < 1e-3 ? ".2~e" : ".3~r")(value);

/** Empty an SVG element, fit its coordinates to its size in pixels, and return it with that size. */
function emptied(name) {
  const svg = d3.select(root).select(`svg.${name}`);
  const { width, height } = svg.node().getBoundingClientRect();
  svg.attr("viewBox", `0 0 ${width} ${height}`).selectAll("*").remove();
  return { svg, width, height };
}

/** Center and half width of what is shown: a power of two where it follows the population, so that it seldom jumps. */
function region({ mean, std, population }, view) {
  if (view === "whole") return { center: [0, 0], half: HALF_WIDTH };
  const reach = d3.max([...population.map((x) => length([x[0] - mean[0], x[1] - mean[1]])), 1.2 * length(std)]);
  return { center: mean, half: 2 ** Math.ceil(Math.log2(Math.max(reach, 1e-12))) };
}

function drawPlot(state, shown) {
  const margin = { left: 52, bottom: 34, top: 8, right: 8 };
  const { svg, width, height } = emptied("plot");
  const size = Math.min(width - margin.left - margin.right, height - margin.top - margin.bottom);
  const { center, half } = region(state, shown.view);
  const [x, y] = [0, 1].map((i) => d3.scaleLinear([center[i] - half, center[i] + half], i ? [size, 0] : [0, size]));
  const frame = svg.append("g").attr("transform", `translate(${margin.left}, ${margin.top})`);
  frame.append("g").attr("transform", `translate(0, ${size})`).call(d3.axisBottom(x).ticks(5, "~g"));
  frame.append("g").call(d3.axisLeft(y).ticks(5, "~g"));
  frame.append("text").attr("class", "name").attr("x", size).attr("y", size + 30).attr("text-anchor", "end").text("x₁");
  frame.append("text").attr("class", "name").attr("x", 6).attr("y", 14).text("x₂");
  const area = frame.append("svg").attr("class", "area").attr("width", size).attr("height", size); // clips
  area.append("rect").attr("width", size).attr("height", size);
  drawContours(area, FUNCTIONS[shown.function], x, y, size);
  drawPopulation(area, state, shown.n_elite, (point) => [x(point[0]), y(point[1])]);
  area.append("ellipse").attr("class", "sigma").attr("cx", x(state.mean[0])).attr("cy", y(state.mean[1]))
    .attr("rx", x(state.std[0]) - x(0)).attr("ry", y(0) - y(state.std[1]));
  drawDirections(area, state, [x(state.mean[0]), y(state.mean[1])], Math.max(44, x(length(state.std)) - x(0)), size);
  area.on("click", (event) => {
    const [u, v] = d3.pointer(event);
    setStart([x.invert(u), y.invert(v)]);
  });
}

function drawContours(area, f, x, y, size) {
  const cells = d3.range(GRID).map((k) => ((k + 0.5) * size) / GRID);
  const values = cells.flatMap((v) => cells.map((u) => f([x.invert(u), y.invert(v)])));
  const sorted = Float64Array.from(values).sort();
  const contours = d3.contours().size([GRID, GRID]).thresholds(LEVELS.map((share) => d3.quantileSorted(sorted, share)));
  area.append("g").attr("class", "contours").attr("transform", `scale(${size / GRID})`)
    .selectAll("path").data(contours(values)).join("path").attr("d", d3.geoPath());
}

/** Individuals, colored by rank as in the book's figures; what they are is told by their shapes. */
function drawPopulation(area, { population, descent_rows, mean }, n_elite, place) {
  const color = d3.scaleSequential(d3.interpolateViridis).domain([0, population.length - 1]);
  const moved = (point) => `translate(${place(point)})`;
  const mark = (points, type, size) =>
    area.append("g").selectAll("path").data(points).join("path")
      .attr("d", d3.symbol(type, size)).attr("transform", ([point]) => moved(point));
  const ranked = population.map((point, k) => [point, k]).reverse(); // the best lies on top
  mark(ranked.filter(([, k]) => descent_rows.includes(k)), d3.symbolCircle, 190).attr("class", "in-u");
  mark(ranked.filter(([, k]) => k >= n_elite), d3.symbolCircle, 36).attr("class", "point").attr("fill", ([, k]) => color(k));
  mark(ranked.filter(([, k]) => k < n_elite), d3.symbolDiamond, 60).attr("class", "point").attr("fill", ([, k]) => color(k));
  mark([[population[0]]], d3.symbolStar, 130).attr("class", "best");
  mark([[mean]], d3.symbolPlus, 110).attr("class", "mean");
}

/** P and C_ani from the mean at one length, and v, which can lie on either, longer; their own are in the legend. */
function drawDirections(area, { path, descent, v }, [x, y], unit, size) {
  const arrows = [["shift", "v", v, 1.5 * unit], ["path", "P", path, unit], ["descent", "C", descent, unit]];
  const taken = [];
  for (const [name, label, vector, radius] of arrows) {
    if (length(vector) === 0) continue;
    const angle = (Math.atan2(-vector[1], vector[0]) * 180) / Math.PI;
    const arrow = area.append("g").attr("class", `arrow ${name}`).attr("transform", `translate(${x}, ${y}) rotate(${angle})`);
    arrow.append("path").attr("d", `M0,0H${radius}`);
    arrow.append("path").attr("class", "head").attr("d", `M${radius + 4},0l-11,-5v10z`);
    const scale = (radius + 13) / length(vector);
    const inside = (place) => Math.min(Math.max(place, 9), size - 9); // where the frame would cut the letter off
    const at = [inside(x + scale * vector[0]) - x, inside(y - scale * vector[1]) - y];
    const away = y + at[1] > size / 2 ? -1 : 1; // from the nearer edge
    while (taken.some((other) => length([other[0] - at[0], other[1] - at[1]]) < 15)) at[1] += away;
    taken.push(at);
    arrow.append("text").attr("transform", `rotate(${-angle}) translate(${at})`).attr("dy", "0.35em").text(label);
  }
}

/** A small chart of curves against generations. */
function drawChart(name, title, y, curves, marks = []) {
  const margin = { left: 52, right: 14, top: 20, bottom: 22 };
  const { svg, width, height } = emptied(name);
  const last = d3.max(curves, (curve) => curve.values.length);
  const x = d3.scaleLinear([1, Math.max(30, last)], [margin.left, width - margin.right]);
  y.range([height - margin.bottom, margin.top]);
  svg.append("text").attr("class", "name").attr("x", margin.left).attr("y", 12).text(title);
  svg.append("g").attr("transform", `translate(0, ${height - margin.bottom})`).call(d3.axisBottom(x).ticks(4));
  const axis = d3.axisLeft(y).ticks(3).tickFormat(short);
  if (y.base) axis.tickValues(decades(y.domain()));
  svg.append("g").attr("transform", `translate(${margin.left}, 0)`).call(axis);
  for (const generation of marks) {
    svg.append("path").attr("class", "reset").attr("d", `M${x(generation)},${margin.top}V${height - margin.bottom}`);
  }
  for (const { kind, values } of curves) {
    const line = d3.line((_, k) => x(k + 1), (value) => y(value));
    svg.append("path").attr("class", `curve ${kind}`).attr("d", line(values));
    svg.append("circle").attr("class", `curve ${kind}`).attr("r", 2.5).attr("cx", x(values.length)).attr("cy", y(values.at(-1)));
  }
}

/** At most four powers of ten between two. */
function decades([low, high]) {
  const [first, last] = [low, high].map((end) => Math.round(Math.log10(end)));
  return d3.range(first, last + 1, Math.ceil((last - first + 1) / 4)).map((power) => 10 ** power);
}

const logarithmic = (values) => d3.scaleLog().domain(d3.extent(values)).nice();

function drawCharts(known) {
  const errors = known.map((state) => Math.max(state.fitness[0], 1e-99)); // zero has no logarithm
  const widths = known.map((state) => length(state.std) / Math.SQRT2);
  const resets = known.flatMap((state, k) => (isReset(known, k) ? [k + 1] : []));
  drawChart("errors", "error of the best", logarithmic(errors), [{ kind: "error", values: errors }], resets);
  const betas = ["beta1", "beta2"].map((kind) => ({ kind, values: known.map((state) => state[kind]) }));
  drawChart("betas", "β₁ (solid), β₂ (dashed)", d3.scaleLinear().domain([0, 3]), betas, resets);
  drawChart("widths", "‖σ‖ / √n", logarithmic(widths), [{ kind: "width", values: widths }], resets);
}

/** Whether the state at index k is one that a reset has left. */
const isReset = (known, k) => k > 0 && known[k].stagnation === 0 && !isSuccess(known, k);
const isSuccess = (known, k) => k > 0 && known[k].fitness[0] !== known[k - 1].fitness[0];

function tell(known) {
  const k = known.length - 1;
  const { generation, fitness, beta1, beta2, path, descent, v, std } = known[k];
  const what = k === 0 ? "first population" : isSuccess(known, k) ? "a new best" : isReset(known, k) ? "reset" : "no better best";
  status.textContent = `Generation ${generation}: error ${short(fitness[0])}, ${what}.`;
  const angle = (Math.acos((path[0] * descent[0] + path[1] * descent[1]) / (length(path) * length(descent))) * 180) / Math.PI;
  const values = {
    generation, path: short(length(path)), descent: short(length(descent)), shift: short(length(v)),
    angle: isNaN(angle) ? "–" : `${angle.toFixed(0)}°`, beta1: short(beta1), beta2: short(beta2), std: std.map(short).join(", "),
  };
  for (const output of root.querySelectorAll("[data-value]")) output.textContent = values[output.dataset.value];
}

/** Show what the controls say, and, where the search stands still, put it into the page's address. */
function show() {
  if (!form.reportValidity()) return;
  const shown = settings();
  const known = states(shown);
  drawPlot(known.at(-1), shown);
  drawCharts(known);
  tell(known);
  if (!timer) history.replaceState(null, "", `#${new URLSearchParams(new FormData(form))}`);
}

// ---- what a reader does

let timer = null;

function play(on) {
  timer?.stop();
  timer = on ? d3.interval(() => step(1), 1000 / control.speed.value) : null;
  control.play.textContent = on ? "Pause" : "Play";
  status.setAttribute("aria-live", on ? "off" : "polite"); // a screen reader hears where it stops
  show();
}

function step(by) {
  control.generation.value = control.generation.valueAsNumber + by; // a range keeps it between its ends
  if (timer && control.generation.value === control.generation.max) play(false);
  else show();
}

function restart() {
  control.generation.value = 1;
  play(false);
}

control.back.onclick = () => step(-1);
control.step.onclick = () => step(1);
control.play.onclick = () => play(!timer);
control.restart.onclick = restart;
form.onsubmit = (event) => event.preventDefault();
form.oninput = ({ target }) => {
  if (target === control.preset && target.value) location.hash = target.value.replace("directions-", "play-");
  else if (target === control.speed) play(timer !== null);
  else {
    if (target !== control.generation) control.preset.value = "";
    limitElites();
    show();
  }
};

function setStart(point) {
  [control.x1.value, control.x2.value] = point.map((value) => Number(value.toPrecision(4)));
  control.preset.value = "";
  restart();
}

root.onkeydown = (event) => {
  const { key, target } = event;
  const act = { " ": () => play(!timer), ArrowRight: () => step(1), ArrowLeft: () => step(-1) }[key];
  const own = target.closest("input, select, summary") || (key === " " && target.closest("button"));
  if (!act || own || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  act();
};

root.hidden = false;
document.documentElement.classList.add("playground-runs"); // hides the static figure
window.addEventListener("hashchange", open);
new ResizeObserver(([plot]) => plot.contentRect.width && show()).observe(root.querySelector("svg.plot")); // 0 on paper
open();
