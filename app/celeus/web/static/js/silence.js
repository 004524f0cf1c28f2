/* Whether the service answers: a page that shows live things says when it does not. */

import { byId, el, fill } from "./dom.js";

const LOOK_MS = 1_000;
const ASK_MS = 3_000;
const ASKED_MS = 5_000;
const DOUBT_MS = ASK_MS + LOOK_MS;
/** What has said nothing for so long is silent: one slow answer is not */
export const SILENT_MS = 7_000;

let heardAt = Date.now();
/** @type {number | null} since when the service is silent */
let silentAt = null;
/** @type {number | null} since when the stream of news is, though the service answers */
let stalledAt = null;
let tell = show;

/** The service has answered something. */
export function heard() {
  heardAt = Date.now();
  if (silentAt === null) return;
  silentAt = null;
  tell(silentAt);
}

/**
 * The stream of news has said nothing since then, or (null) it speaks.
 *
 * @param {number | null} since
 */
export function stalled(since) {
  if (since === stalledAt) return;
  stalledAt = since;
  tell(silentAt);
}

/**
 * Do something every second; `fresh` says that the page slept meanwhile, or was out of sight.
 *
 * @param {(now: number, fresh: boolean) => void} work
 */
export function everySecond(work) {
  let last = Date.now();
  return setInterval(() => {
    const now = Date.now();
    const slept = now - last > DOUBT_MS;
    last = now;
    work(now, slept || document.hidden);
  }, LOOK_MS);
}

/** Whether it may be that the service does not answer any more. */
export function doubtful() {
  return Date.now() - heardAt > DOUBT_MS;
}

/**
 * Ask whether the service answers whenever nothing was heard of it, and tell when it does not.
 *
 * `telling` gets the moment it was last heard, or null when it answers again; without one a bar at
 * the foot of the page says so.
 *
 * @param {(since: number | null) => void} [telling]
 */
export function watch(telling = show) {
  tell = telling;
  let askedAt = 0;
  document.body.append(el("div", { id: "silence", role: "status" }));
  everySecond((now, fresh) => {
    // What was not asked cannot have been silent
    if (fresh && silentAt === null) heardAt = now;
    if (document.hidden) return;
    if (now - Math.max(heardAt, askedAt) >= ASK_MS) {
      askedAt = now;
      ask();
    }
    if (silentAt !== null || now - heardAt < SILENT_MS) return;
    silentAt = heardAt;
    tell(silentAt);
  });
}

async function ask() {
  try {
    const signal = AbortSignal.timeout(ASKED_MS);
    const answer = await fetch("/healthz", { cache: "no-store", signal });
    if (answer.ok && (await answer.json()).status === "ok") heard();
  } catch {
    // Silence is what is looked for
  }
}

/** @param {number | null} since */
function show(since) {
  fill(byId("silence"), words(since));
}

/**
 * A time of day.
 *
 * @param {number} at
 */
export function clock(at) {
  return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

/** @param {number | null} since */
function words(since) {
  if (since !== null)
    return `The service has not answered since ${clock(since)}. What you see may be old; trying again.`;
  if (stalledAt !== null)
    return `No live news has come since ${clock(stalledAt)}. What you see may be old; trying again.`;
  return null;
}
