/* The page of one session: everything on it follows the session live. */

import { byId, el, fill, given } from "./dom.js";
import "./forms.js";
import { renew, swap } from "./live.js";
import { follow } from "./session/follow.js";
import { stalled, watch } from "./silence.js";

const LOOK_MS = 4_000;
const TOGETHER_MS = 1_000;
/** A look that takes long is repeated seldom: it costs the service as much. */
const REST = 5;
const PATIENCE_MS = 30_000;
const HEALTH_REST_MS = 5_000;
const LONG_MS = 120_000;
const NEWS_SHARE = 0.02;

/** @type {AnySession} */
let session = given("session");
let asked = { round: -1, revision: 0, at: 0 };
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
  lookAtSurrogate();
}

/* The card costs more the longer the session is: asked for when it may look different. */
function lookAtSurrogate() {
  const { round, revision } = session;
  const news =
    round - asked.round >= Math.max(1, NEWS_SHARE * asked.round) || revision !== asked.revision;
  if (!news || Date.now() - asked.at < HEALTH_REST_MS) return;
  asked = { round, revision, at: Date.now() };
  showSurrogate();
}

function showSurrogate() {
  if (document.getElementById("health") === null) return;
  const chosen = document.querySelector("input[name=health]:checked");
  const by = chosen instanceof HTMLInputElement ? chosen.value : "curve";
  swap("health", `/sessions/${session.id}/surrogate?by=${by}`, { wait: LONG_MS }).catch(() => {});
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
byId("main").addEventListener("change", ({ target }) => {
  const form = target instanceof Element ? target.closest("form.look") : null;
  if (target instanceof HTMLInputElement && target.name === "health") showSurrogate();
  if (!(form instanceof HTMLFormElement)) return;
  const [[name, value] = []] = new FormData(form);
  history.replaceState(null, "", `?${name}=${value}`);
  look();
});
// What a point of the chart stands for, before it is followed
byId("main").addEventListener("pointerover", ({ target }) => {
  const readout = document.getElementById("chart-readout");
  if (readout === null || !(target instanceof Element)) return;
  readout.textContent = target.closest("#chart a")?.textContent ?? readout.dataset.now ?? "";
});
// How long something is ago, and for how long a draw is out, changes by itself
setInterval(() => {
  if (!document.hidden && session.state !== "closed") soon();
}, LOOK_MS);
watch();
open();
look();
performance.mark("usable");
