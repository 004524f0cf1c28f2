/* Elements made without HTML: whatever a text holds, it is shown as text. */

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "path", "line", "rect", "circle", "polyline", "polygon", "text", "title"]);

/**
 * An element with its properties and children.
 *
 * `props` are attributes; `class`, `dataset` (an object) and `on` (an object of listeners) are
 * taken too. A property that is null, undefined or false is left out, and one that is true is set
 * without a value. Children are nodes or texts, in arrays if you like; null and false are left out.
 */
export function el(tag, props = {}, ...children) {
  const inSvg = SVG_TAGS.has(tag) && tag !== "title";
  const made = inSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "dataset") Object.assign(made.dataset, value);
    else if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name === "style") for (const [rule, set] of Object.entries(value)) made.style.setProperty(rule, set);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  add(made, children);
  return made;
}

function add(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(parent, child);
    else if (child instanceof Node) parent.append(child);
    else if (child !== null && child !== undefined && child !== false) parent.append(String(child));
  }
}

/** Replace what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** The element of an id, which has to be there. */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`there is no element #${id}`);
  return found;
}

/** What the page was given by the server: the JSON in `<script type="application/json" id=…>`. */
export function given(id) {
  return JSON.parse(byId(id).textContent);
}

/** Say something to whoever listens instead of looking, without moving the focus. */
export function announce(text) {
  let live = document.getElementById("announcer");
  if (live === null) {
    live = el("div", { id: "announcer", class: "visually-hidden", role: "status", "aria-live": "polite" });
    document.body.append(live);
  }
  live.textContent = text;
}
