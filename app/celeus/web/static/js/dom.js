/* Elements made without HTML: whatever a text holds, it is shown as text. */

/**
 * An element with its properties and children.
 *
 * `props` are attributes; `class`, `dataset` (an object) and `on` (an object of listeners) are
 * taken too. A property that is null, undefined or false is left out, and one that is true is set
 * without a value. Children are nodes or texts, in arrays if you like; null and false are left out.
 *
 * @template {string} T
 * @param {T} tag
 * @param {Props} props
 * @param {...Child} children
 * @returns {ElementOf<T>}
 */
export function el(tag, props = {}, ...children) {
  const { on = {}, dataset = {}, ...attributes } = props;
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  Object.assign(made.dataset, dataset);
  for (const [event, listener] of Object.entries(on)) {
    made.addEventListener(event, /** @type {EventListener} */ (listener));
  }
  add(made, children);
  return /** @type {ElementOf<T>} */ (made);
}

/**
 * @param {Element} parent
 * @param {Child[]} children
 */
function add(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(parent, child);
    else if (child instanceof Node) parent.append(child);
    else if (child !== null && child !== undefined && child !== false) parent.append(String(child));
  }
}

/**
 * A small button that does something.
 *
 * @param {Child} words
 * @param {() => void} click
 * @param {Props} [props]
 */
export function button(words, click, props) {
  return el("button", { type: "button", class: "button small", on: { click }, ...props }, words);
}

/**
 * Replace what an element holds.
 *
 * @template {Element} T
 * @param {T} element
 * @param {...Child} children
 * @returns {T}
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/**
 * The element of an id, which has to be there and of this kind.
 *
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @param {new () => T} [kind]
 */
export function byId(id, kind) {
  return only(document, `#${CSS.escape(id)}`, kind);
}

/**
 * The first element that a selector fits within another; it has to be there and of this kind.
 *
 * @template {Element} [T=HTMLElement]
 * @param {ParentNode} within
 * @param {string} selector
 * @param {new () => T} [kind]
 * @returns {T}
 */
export function only(within, selector, kind) {
  const element = within.querySelector(selector);
  const wanted = kind ?? HTMLElement;
  if (element instanceof wanted) return /** @type {T} */ (element);
  throw new Error(`there is no ${wanted.name} ${selector}`);
}

/**
 * What a template of the page holds, with these texts in its slots.
 *
 * @param {string} id
 * @param {Record<string, string>} [slots]
 */
export function cloned(id, slots = {}) {
  const made = document.importNode(byId(id, HTMLTemplateElement).content, true);
  for (const slot of /** @type {NodeListOf<HTMLElement>} */ (made.querySelectorAll("[data-slot]")))
    slot.textContent = slots[slot.dataset.slot ?? ""] ?? "";
  return made;
}

/**
 * What the page was given by the server: the JSON in `<script type="application/json" id=…>`.
 *
 * @param {string} id
 * @returns {any}
 */
export function given(id) {
  return JSON.parse(byId(id).textContent ?? "null");
}

/**
 * Say something to whoever listens instead of looking, without moving the focus.
 *
 * @param {string} text
 */
export function announce(text) {
  byId("announcer").textContent = text;
}
