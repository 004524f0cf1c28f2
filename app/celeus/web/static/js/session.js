/* The page of one session: everything on it follows the session live. */

import { byId, el, fill, given } from "./dom.js";
import { renew } from "./live.js";
import { listen } from "./session/actions.js";
import { follow } from "./session/follow.js";
import { stalled, watch } from "./silence.js";

const LOOK_MS = 4_000;
const TOGETHER_MS = 1_000;
/** A look that takes long is repeated seldom: it costs the service as much. */
const REST = 5;
const PATIENCE_MS = 30_000;

/** @type {AnySession} */
let session = given("session");
/** @type {typeof import("./session/interval.js") | null} */
let interval = null;
let waiting = { first: "", since: 0 };
/** @type {ReturnType<typeof setTimeout> | undefined} */
let due;
let rested = 0;

/** Show the page as it is now; what changes often is asked for once a while. */
function soon() {
  due ??= setTimeout(look, Math.max(0, rested - Date.now()));
}

async function look() {
  clearTimeout(due);
  due = undefined;
  const began = Date.now();
  try {
    await renew();
    showHeld();
    rested = Date.now() + Math.max(TOGETHER_MS, REST * (Date.now() - began));
  } catch {
    // The page tells when the service is silent; what is shown stays until it answers again
  }
  interval?.lookAtSurrogate().catch(() => {});
}

/* What labels wait for is told when they have waited for longer than an item usually takes. */
function showHeld() {
  const place = byId("held");
  const first = place.dataset.first ?? "";
  if (first !== waiting.first) waiting = { first, since: Date.now() };
  place.hidden = Date.now() - waiting.since < PATIENCE_MS;
}

/** @param {News} news */
function told(news) {
  session = news.session;
  interval?.told(news);
  soon();
}

let stop = () => {};
function open() {
  stop = follow(session.id, {
    told,
    lost: stalled,
    found: () => stalled(null),
    gone: ({ detail }) => {
      const words = `${detail} This page no longer follows it.`;
      fill(byId("banner"), el("p", { class: "notice danger" }, words));
    },
  });
}

// A browser opens few connections to one service: a page nobody looks at must not keep one
document.addEventListener("visibilitychange", () => {
  stop();
  if (!document.hidden && session.state !== "closed") open();
});
document.getElementById("order")?.addEventListener("change", (event) => {
  const { value } = /** @type {HTMLSelectElement} */ (event.target);
  history.replaceState(null, "", value === "plan" ? location.pathname : `?order=${value}`);
  look();
});
// How long something is ago, and for how long a draw is out, changes by itself
setInterval(() => {
  if (!document.hidden && session.state !== "closed") soon();
}, LOOK_MS);
listen(look);
watch();
if (!session.best && !session.table) interval = await import("./session/interval.js");
open();
look();
performance.mark("usable");
