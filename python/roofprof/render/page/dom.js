// Elements. Data reach the page as text nodes and attributes only: no name can become markup.

const byId = (id) => document.getElementById(id);

/** An element with properties, attributes (their names in `attributes`) and children: nodes or texts. */
function make(tag, { attributes = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element of the drawing `inside`. */
function draw(inside, tag, attributes, ...children) {
  const element = document.createElementNS(inside.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A name of the user's: whatever its direction of writing is, it stays inside. */
const nameOf = (text, className = "name") => make("bdi", { className, textContent: text });

const button = (label, onclick, properties = {}) =>
  make("button", { type: "button", onclick, ...properties }, label);

/** A table that does not change: headings and rows of texts or nodes; `numeric` are the columns that stand right. */
function plainTable(headings, rows, numeric = new Set()) {
  const cell = (tag) => (content, index) =>
    make(tag, { className: numeric.has(index) ? "number" : "", attributes: tag === "th" ? { scope: "col" } : {} },
      content);
  return make("div", { className: "box", tabIndex: 0, attributes: { role: "group" } },
    make("table", { className: "plain" },
      make("thead", {}, make("tr", {}, ...headings.map(cell("th")))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell("td")))))));
}

/** Something that opens: the first so many items stand in it, and it says how many do not. */
function listing(label, items, most = 1000) {
  const list = make("ul", { className: "names" }, ...items.slice(0, most).map((item) => make("li", {}, nameOf(item))));
  const rest = items.length - most;
  return make("details", {}, make("summary", {}, label), list,
    rest > 0 ? make("p", { className: "said" }, `${rest} more are in the report's JSON.`) : null);
}

const modulePath = (path) => (path === "" ? "(model)" : path);
const plural = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
