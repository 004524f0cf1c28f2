/* Who this window is: every window of a person is a worker of its own, so that no two hold one draw. */

const PLACE = "celeus.window";
const LONGEST_NAME = 80;

/**
 * The name this window judges under. It outlives a reload.
 *
 * A duplicated tab begins with a copy of the other's memory, which says that it is still open;
 * what was closed or reloaded has noted that it is not.
 */
export function workerOf(name) {
  let kept = read();
  if (kept === null || kept.open) kept = { id: randomId(), open: true };
  write({ ...kept, open: true });
  window.addEventListener("pagehide", () => write({ ...kept, open: false }));
  window.addEventListener("pageshow", () => write({ ...kept, open: true }));
  return `${name.slice(0, LONGEST_NAME)} ${kept.id}`;
}

function randomId() {
  const words = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(words, (word) => word.toString(16).padStart(2, "0")).join("");
}

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(PLACE));
  } catch {
    return null;
  }
}

function write(kept) {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(kept));
  } catch {
    // Without a memory a reload makes a new worker, and the draws come back when they expire
  }
}
