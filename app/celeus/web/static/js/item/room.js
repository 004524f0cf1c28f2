/* How much of an item is on the page at first: the rest comes when somebody asks for it. */

import { button, el } from "../dom.js";
import { counted } from "../format.js";

/**
 * What there is room for: `parts` of lists, such as messages, members and documents; `media`,
 * pictures and sounds, of which each is a request; `formulas`, and `nodes` that they consist of.
 *
 * @typedef {{ parts: number, media: number, formulas: number, nodes: number }} Room
 */

/** @type {Room} */
const WHOLE = { parts: 200, media: 32, formulas: 300, nodes: 20_000 };
/** Parts of a list that are shown even where those before it took all the room. */
const LEAST = 3;

/**
 * Room for an item; for one of several that share it, a share.
 *
 * @param {number} [sharers]
 * @returns {Room}
 */
export function roomFor(sharers = 1) {
  const share = (/** @type {number} */ whole) => Math.max(1, Math.floor(whole / sharers));
  const { parts, media, formulas, nodes } = WHOLE;
  return {
    parts: share(parts),
    media: share(media),
    formulas: share(formulas),
    nodes: share(nodes),
  };
}

/**
 * A list with as many parts as there is room for, and a button for more of them, before its `last`
 * parts, which are shown in any case.
 *
 * @template T
 * @param {HTMLElement} list
 * @param {T[]} all
 * @param {Room} room
 * @param {(one: T, room: Room, at: number) => HTMLElement} build
 * @param {{ noun: string, kind?: "parts" | "media", last?: number }} terms
 */
export function grown(list, all, room, build, { noun, kind = "parts", last = 0 }) {
  const end = Math.max(0, all.length - last);
  const part = (/** @type {number} */ at, /** @type {Room} */ within) => {
    within[kind] -= 1;
    return build(all[at], within, at);
  };
  // First the end, which may be what is judged
  const closing = all.slice(end).map((_, at) => part(end + at, room));
  let at = 0;
  const next = (/** @type {Room} */ within) => {
    const made = [];
    const least = kind === "parts" ? LEAST : 0;
    while (at < end && (within[kind] > 0 || made.length < least)) made.push(part(at++, within));
    return made;
  };
  list.append(...next(room));
  if (at === end) {
    list.append(...closing);
    return list;
  }
  const tell = () => {
    const left = counted(end - at, noun);
    grow.textContent = at === 0 ? `Show ${left}` : `Show more (${left} left)`;
  };
  const items = list.matches("ol, ul");
  const more = () => {
    const made = next(roomFor());
    if (items) list.append(...made);
    else grow.before(...made);
    // Where one reads on, and not nowhere
    made[0].tabIndex = -1;
    made[0].focus();
    if (at === end) grow.remove();
    else tell();
  };
  const grow = button("", more, { class: "button small payload-grow" });
  tell();
  if (items) return el("div", { class: "payload-grown" }, list, grow);
  list.append(grow, ...closing);
  return list;
}

/**
 * Parts of what holds others beside them: as they are where there is room for all, else grown.
 *
 * @template T
 * @param {T[]} all
 * @param {Room} room
 * @param {(one: T, room: Room) => HTMLElement} build
 * @param {string} noun
 */
export function several(all, room, build, noun) {
  if (all.length > Math.max(LEAST, room.parts))
    return [grown(el("div", { class: "payload-several" }), all, room, build, { noun })];
  // The first is counted with what holds it
  room.parts -= Math.max(0, all.length - 1);
  return all.map((one) => build(one, room));
}
