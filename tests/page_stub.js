// What the scripts of the playground and of the first page need of a browser: elements that know their attributes,
// children and listeners, a form of the page's controls, an address, pictures, and canvases that keep what was drawn
// last. tests/test_playground.py and tests/test_first_page.py read what the scripts make of them.

class Element {
  constructor(tag, attributes = {}, size = [400, 300]) {
    Object.assign(this, { tagName: tag, attributes, childNodes: [], own: "", size, parentNode: null });
    this.namespaceURI = "http://www.w3.org/2000/svg";
    this.ownerDocument = document;
  }
  get textContent() { return this.own + this.childNodes.map((node) => node.textContent).join(""); }
  set textContent(text) { this.own = String(text); this.childNodes = []; }
  get nextSibling() { return this.parentNode?.childNodes[this.parentNode.childNodes.indexOf(this) + 1] ?? null; }
  get dataset() { return { value: this.attributes["data-value"] }; }
  getAttribute(name) { return this.attributes[name] ?? null; }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  removeAttribute(name) { delete this.attributes[name]; }
  insertBefore(node, next) {
    node.parentNode?.removeChild(node);
    this.childNodes.splice(next ? this.childNodes.indexOf(next) : this.childNodes.length, 0, node);
    node.parentNode = this;
    return node;
  }
  appendChild(node) { return this.insertBefore(node, null); }
  removeChild(node) { this.childNodes = this.childNodes.filter((child) => child !== node); node.parentNode = null; }
  compareDocumentPosition() { return 4; }
  getBoundingClientRect() { return { left: 0, top: 0, width: this.size[0], height: this.size[1] }; }
  get clientLeft() { return 0; }
  get clientTop() { return 0; }
  addEventListener(name, listener) { this.listeners = { ...this.listeners, [name]: listener }; }
  scrollIntoView() { this.scrolled = (this.scrolled ?? 0) + 1; }
  get width() { return Number(this.attributes.width); }
  get height() { return Number(this.attributes.height); }
  get valueAsNumber() { return Number(this.value); }
  getContext() {
    const clearRect = () => { this.ink = []; };
    return { clearRect, drawImage: (picture, ...where) => { if (picture.loaded) this.ink.push([picture.src, ...where]); } };
  }
  matches(selector) {
    const [, tag, name, attribute, value] = selector.match(/^([\w-]+)?(?:\.([\w-]+))?(?:\[([\w-]+)(?:=([\w-]+))?\])?$|^\*$/);
    return (!tag || tag === this.tagName) && (!name || (this.attributes.class ?? "").split(" ").includes(name)) &&
      (!attribute || (attribute in this.attributes && (!value || this.attributes[attribute] === value)));
  }
  querySelectorAll(selector) {
    return this.childNodes.flatMap((node) => [...(node.matches(selector) ? [node] : []), ...node.querySelectorAll(selector)]);
  }
  querySelector(selector) { return this.querySelectorAll(selector)[0] ?? null; }
}

class URLSearchParams {
  constructor(given) {
    const pairs = (text) => text.split("&").filter(Boolean).map((pair) => pair.split("=").map(decodeURIComponent));
    this.entries = typeof given === "string" ? pairs(given) : given[Symbol.iterator] ? [...given] : Object.entries(given);
  }
  [Symbol.iterator]() { return this.entries[Symbol.iterator](); }
  toString() { return this.entries.map((pair) => pair.map(encodeURIComponent).join("=")).join("&"); }
}

class FormData {
  constructor({ elements }) { this.entries = Object.values(elements).filter((c) => c.tag !== "button").map((c) => [c.name, c.value]); }
  [Symbol.iterator]() { return this.entries[Symbol.iterator](); }
}

class ResizeObserver { observe() {} }

class Image {
  constructor() { Image.every = [...(Image.every ?? []), this]; }
  load() { this.loaded = true; this.onload(); }
}

const location = { hash: "" };
const history = { replaceState(state, title, address) { history.address = address; } };
const window = { devicePixelRatio: 2, addEventListener: (name, listener) => { window[name] = listener; } };
const document = { createElementNS: (_, tag) => new Element(tag), documentElement: { classList: { add(name) { document.told = name; } } } };

/** The page around the script: controls as {name: {tag, value, ...}}, and the outputs that show values. */
function stand(controls, outputs, presets) {
  const root = new Element("section");
  const form = new Element("form");
  form.elements = controls;
  Object.defineProperty(controls, "namedItem", { value: (name) => controls[name] });
  for (const control of Object.values(controls)) {
    let text = control.value;
    Object.defineProperty(control, "value", { get: () => text, set: (value) => { text = String(value); } });
    Object.defineProperty(control, "valueAsNumber", { get: () => Number(text) });
  }
  form.checkValidity = form.reportValidity = () => true;
  for (const name of ["plot", "errors", "betas", "widths"]) root.appendChild(new Element("svg", { class: name }));
  for (const name of outputs) root.appendChild(new Element("output", { "data-value": name }));
  root.appendChild(new Element("p", { role: "status" }));
  root.appendChild(form);
  root.appendChild(new Element("details"));
  document.getElementById = (name) => (name === "playground" ? root : { textContent: JSON.stringify(presets) });
  return root;
}

/** An element of a page with all in it, given as [tag, attributes, text, children]. */
function built([tag, attributes, text, children]) {
  const element = new Element(tag, attributes);
  Object.assign(element, { own: text, value: attributes.value });
  for (const child of children) element.appendChild(built(child));
  return element;
}
