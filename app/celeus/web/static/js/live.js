/* A page that stays as the server renders it: asked for anew, and changed where it differs. */

import { api } from "./api.js";
import { byId } from "./dom.js";

/** @typedef {(page: Document) => void} Settle */

/** @type {Promise<void>} */
let running = Promise.resolve();
/** @type {Promise<void> | null} */
let next = null;
/** @type {Settle | null} */
let settling = null;

/**
 * Ask for the page as it is from now on, and change the main part of the one that is shown; what
 * has the attribute `data-own` in it belongs to scripts. Those who ask at once are answered together:
 * `settle`, which may change what came, is called if all of them have one.
 *
 * @param {Settle | null} settle
 */
export function renew(settle = null) {
  settling = next === null ? settle : settling && settle;
  next ??= running
    .catch(() => {})
    .then(() => {
      next = null;
      running = swap("main", location.pathname + location.search, { settle: settling });
      return running;
    });
  return next;
}

/**
 * Enable what a script serves, as with `data-ready` it waits for one.
 *
 * @param {Document} page
 */
export function ready(page = document) {
  for (const control of page.querySelectorAll("[data-ready]")) control.removeAttribute("disabled");
}

/**
 * Change elements to what they are on the page at this address.
 *
 * @param {string | string[]} ids
 * @param {string} path
 * @param {{ wait?: number, settle?: Settle | null, body?: unknown, signal?: AbortSignal }} [options]
 */
export async function swap(ids, path, { wait, settle, body, signal } = {}) {
  const options = { retry: 0, raw: true, wait, signal };
  const answer = await api(body === undefined ? "GET" : "POST", path, body, options);
  const page = read(await answer.text());
  for (const id of [ids].flat()) show(id, page, settle);
}

/** The page of an answer. */
export function read(/** @type {string} */ text) {
  return new DOMParser().parseFromString(text, "text/html");
}

/**
 * Change an element to what it is on this page; false where the page has none.
 *
 * @param {string} id
 * @param {Document} page
 * @param {Settle | null} [settle]
 */
export function show(id, page, settle) {
  settle?.(page);
  ready(page);
  const fresh = page.getElementById(id);
  if (fresh !== null) become(byId(id), fresh);
  return fresh !== null;
}

/**
 * Make an element what another one is. Whatever is the same stays, with its focus and scrolling;
 * so does what has the same id, and what somebody has opened.
 *
 * @param {Element} shown
 * @param {Element} fresh
 */
function become(shown, fresh) {
  for (const { name } of [...shown.attributes])
    if (!fresh.hasAttribute(name) && name !== "open") shown.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  const ids = new Set([...fresh.children].map(idOf));
  for (const child of [...shown.children]) if (!ids.has(idOf(child))) child.remove();
  let old = shown.firstChild;
  for (const node of [...fresh.childNodes]) {
    const same = counterpart(shown, old, node);
    if (same === null || same !== old) shown.insertBefore(same ?? node, old);
    else old = old.nextSibling;
    if (same !== null && !same.isEqualNode(node)) change(same, node);
  }
  while (old !== null) {
    const gone = old;
    old = old.nextSibling;
    gone.remove();
  }
}

/**
 * What stands in an element for a node: what has its id, else what is at its place and of its kind.
 *
 * @param {Element} shown
 * @param {ChildNode | null} old
 * @param {ChildNode} node
 */
function counterpart(shown, old, node) {
  if (node instanceof Element && idOf(node) !== null)
    return [...shown.children].find((child) => idOf(child) === idOf(node)) ?? null;
  const fits =
    old?.nodeName === node.nodeName &&
    !(old instanceof Element && (idOf(old) !== null || isOwn(old) !== isOwn(node)));
  return fits ? old : null;
}

/**
 * The id of an element: of a form, `id` may be one of its fields.
 *
 * @param {Element} element
 */
function idOf(element) {
  return element.getAttribute("id");
}

/** @param {ChildNode} node */
function isOwn(node) {
  return node instanceof Element && node.hasAttribute("data-own");
}

/**
 * @param {ChildNode} same
 * @param {ChildNode} node
 */
function change(same, node) {
  if (!(same instanceof Element && node instanceof Element)) same.textContent = node.textContent;
  else if (!isOwn(same)) become(same, node);
}
