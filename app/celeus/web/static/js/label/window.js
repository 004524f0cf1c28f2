/* Who this window is: every window of a person is a worker of its own, so that no two hold one draw. */

import { keep, recalled } from "./memory.js";

const PLACE = "celeus.window";
const LEFT = "celeus.left";
const MOST_LEFT = 20;
const LONGEST_NAME = 80;

/**
 * The name this window judges under. It outlives a reload, and a window that was closed leaves it to
 * the next one, which then is handed the items the other held: all later labels wait for theirs.
 *
 * A duplicated tab begins with a copy of the other's memory, which says that it is still open;
 * what was closed or reloaded has noted that it is not.
 *
 * @param {string} name
 */
export function workerOf(name) {
  const kept = recalled("sessionStorage", PLACE);
  const id = kept === null || kept.open ? (left()[0] ?? randomId()) : kept.id;
  let replaced = false;
  begin(id);
  window.addEventListener("pagehide", () => {
    if (!replaced) leave(id);
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    if (left().includes(id)) return begin(id);
    // Another window has gone on in its place: it begins anew
    replaced = true;
    keep("sessionStorage", PLACE, null);
    location.reload();
  });
  // By characters: half of one could neither be sent nor kept
  return `${Array.from(name).slice(0, LONGEST_NAME).join("")} ${id}`;
}

/** @param {string} id */
function begin(id) {
  keep("sessionStorage", PLACE, { id, open: true });
  const others = left().filter((one) => one !== id);
  if (others.length < left().length) keep("localStorage", LEFT, others);
}

/** @param {string} id */
function leave(id) {
  keep("sessionStorage", PLACE, { id, open: false });
  keep("localStorage", LEFT, [id, ...left().filter((one) => one !== id)].slice(0, MOST_LEFT));
}

/** @returns {string[]} */
function left() {
  const found = recalled("localStorage", LEFT);
  return Array.isArray(found) ? found : [];
}

function randomId() {
  const words = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(words, (word) => word.toString(16).padStart(2, "0")).join("");
}
