// Elements. Data reach the page as text nodes and attributes only: no name can become markup.

const byId = (id) => document.getElementById(id);

/** An element with properties, attributes (their names in `attributes`) and children: nodes or texts. */
function make(tag, { attributes = {}, ...properties } = {}, ...children) {
  return filled(Object.assign(document.createElement(tag), properties), attributes, children);
}

/** An element of a drawing. */
function draw(tag, attributes, ...children) {
  return filled(document.createElementNS(byId("plot").namespaceURI, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A name of the user's: whatever its direction of writing is, it stays inside. */
const nameOf = (text, className = "name") => make("bdi", { className, textContent: text });

const button = (label, onclick, properties = {}) =>
  make("button", { type: "button", onclick, ...properties }, label);

const plural = (count, one, more = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : more}`;
