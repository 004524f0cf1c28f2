/* Who this window is: every window of a person is a worker of its own, so that no two hold one draw. */

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
  const kept = read("sessionStorage", PLACE);
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
    write("sessionStorage", PLACE, null);
    location.reload();
  });
  // By characters: half of one could neither be sent nor kept
  return `${Array.from(name).slice(0, LONGEST_NAME).join("")} ${id}`;
}

/** @param {string} id */
function begin(id) {
  write("sessionStorage", PLACE, { id, open: true });
  const others = left().filter((one) => one !== id);
  if (others.length < left().length) write("localStorage", LEFT, others);
}

/** @param {string} id */
function leave(id) {
  write("sessionStorage", PLACE, { id, open: false });
  write("localStorage", LEFT, [id, ...left().filter((one) => one !== id)].slice(0, MOST_LEFT));
}

/** @returns {string[]} */
function left() {
  const found = read("localStorage", LEFT);
  return Array.isArray(found) ? found : [];
}

function randomId() {
  const words = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(words, (word) => word.toString(16).padStart(2, "0")).join("");
}

/**
 * @param {StorageName} storage
 * @param {string} place
 * @returns {any}
 */
function read(storage, place) {
  try {
    return JSON.parse(window[storage].getItem(place) ?? "null");
  } catch {
    return null;
  }
}

/**
 * @param {StorageName} storage
 * @param {string} place
 * @param {unknown} kept
 */
function write(storage, place, kept) {
  try {
    window[storage].setItem(place, JSON.stringify(kept));
  } catch {
    // Without a memory a reload makes a new worker, and the draws come back when they expire
  }
}
