// Making elements. All that comes from a node or a person becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

export const $ = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

/** An element of HTML: h("p", { class: "hint" }, "some text", h("b", {}, "more")). */
export const h = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);

/** An element of SVG. */
export const s = (name, attributes = {}, ...children) =>
  filled(document.createElementNS(SVG, name), attributes, children);

export const set = (element, attributes) => filled(element, attributes, []);

/** Change a text only if it is another one: a selection of the reader stays. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Calls `action` once it has not been asked for during some milliseconds. */
export function debounced(action, milliseconds) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

export const still = matchMedia("(prefers-reduced-motion: reduce)");
