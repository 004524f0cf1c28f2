/* Texts of an item, in their own direction; a long one is folded until somebody asks for all. */

import { button, el } from "../dom.js";
import { counted } from "../format.js";
import { withMaths } from "./maths.js";
import { roomFor } from "./room.js";

/** @import { Room } from "./room.js" */

const LONGEST = 4_000;
const MOST_LINES = 60;
/** What is hidden is worth a button. */
const SPARED = 1.25;

/**
 * @param {string} value
 * @param {Room} [room]
 * @param {number} [longest]
 */
export function text(value, room, longest) {
  const build = (/** @type {string} */ part, /** @type {Room} */ within) =>
    el("div", { class: "payload-text", dir: "auto" }, withMaths(part, within));
  return folded(value, build, room, longest);
}

/**
 * @param {unknown} value
 * @param {number} [longest]
 */
export function json(value, longest) {
  const build = (/** @type {string} */ part) =>
    el("pre", { class: "payload-json", tabindex: "0" }, part);
  return folded(JSON.stringify(value, null, 2), build, undefined, longest);
}

/**
 * What `build` makes of a text; of a long one, of its beginning, with a button for all of it, which
 * then has room of its own.
 *
 * @param {string} source
 * @param {(part: string, room: Room) => HTMLElement} build
 * @param {Room} [room]
 * @param {number} [longest]
 */
export function folded(source, build, room = roomFor(), longest = LONGEST) {
  const end = endOf(source, longest);
  if (end === source.length) return build(source, room);
  const more = `Show all (${counted(source.length - end, "more character")})`;
  let open = true;
  /** @type {HTMLElement} */
  let shown = el("div");
  const turn = () => {
    open = !open;
    const next = open ? build(source, roomFor()) : build(source.slice(0, end), room);
    shown.replaceWith(next);
    shown = next;
    place.classList.toggle("open", open);
    toggle.textContent = open ? "Show less" : more;
    toggle.setAttribute("aria-expanded", String(open));
    if (!open) toggle.scrollIntoView({ block: "nearest" });
  };
  const toggle = button("", turn);
  const place = el("div", { class: "payload-fold" }, shown, toggle);
  turn();
  return place;
}

/**
 * Where the part ends that is shown of a text: between words, or between lines.
 *
 * @param {string} source
 * @param {number} longest
 */
function endOf(source, longest) {
  let line = 0;
  let end = -1;
  while (line < MOST_LINES) {
    end = source.indexOf("\n", end + 1);
    if (end < 0 || end > longest) break;
    line += 1;
  }
  const tall = line === MOST_LINES && source.slice(end).split("\n").length > MOST_LINES / 4;
  if (tall) return end;
  if (source.length <= longest * SPARED) return source.length;
  const between = Math.max(
    source.lastIndexOf(" ", longest),
    source.lastIndexOf("\n", longest),
    longest / 2,
  );
  // Not between the halves of a character outside the basic plane
  const half = /[\uD800-\uDBFF]/.test(source[Math.floor(between) - 1] ?? "");
  return Math.floor(between) - (half ? 1 : 0);
}
