/* What the pages of all sessions have: a head, a banner, who is judging, and the stream. */

import { api } from "../api.js";
import { byId, el, fill } from "../dom.js";
import { ago, clock, counted, stateOf } from "../format.js";
import { follow } from "./follow.js";
import { workers } from "./workers.js";

const LOOK_MS = 2_000;

/**
 * The badge, the line below the name, and the warnings.
 *
 * @param {AnySession} session
 * @param {string} pool
 * @param {string} words
 */
export function head(session, pool, words) {
  const { word, kind } = stateOf(session);
  const badge = byId("state");
  badge.className = `badge ${kind}`;
  if (badge.textContent !== word) badge.textContent = word;
  fill(
    byId("about"),
    `${words} “`,
    el("bdi", {}, pool),
    `” · ${counted(session.items, "item")} · ${session.origin ? "pushed" : "opened"} ${ago(Date.parse(session.created_at))}`,
  );
  fill(
    byId("warnings"),
    session.warnings.map((warning) => el("p", { class: "notice warning" }, warning)),
  );
}

/**
 * Write a sentence where it belongs, if there is one.
 *
 * @param {string} id
 * @param {string | null} words
 */
export function say(id, words) {
  const place = byId(id);
  place.hidden = words === null;
  if (place.textContent !== words) place.textContent = words;
}

/**
 * @param {string | null} text
 * @param {string} kind
 */
function banner(text, kind = "warning") {
  fill(byId("banner"), text === null ? null : el("p", { class: `notice ${kind}` }, text));
}

/** @param {string} id */
export async function lookAtWorkers(id) {
  const focused = byId("workers").contains(document.activeElement);
  const page = await api("GET", `/v1/sessions/${id}/workers?limit=50`, undefined, { retry: 0 });
  fill(byId("workers"), workers(page));
  /** @type {HTMLElement | null} */
  const scroll = byId("workers").querySelector(".table-scroll");
  if (focused) scroll?.focus();
}

/**
 * Do something again and again while somebody looks, as long as `wanted`.
 *
 * @param {() => Promise<void>} work
 * @param {() => boolean} wanted
 */
export function keepLooking(work, wanted) {
  async function once() {
    try {
      if (!document.hidden) await work();
    } catch {
      // The stream tells when the service is away; what is shown stays until it answers again
    }
    if (wanted()) setTimeout(once, LOOK_MS);
  }
  once();
}

/**
 * Follow a session while somebody looks.
 *
 * @param {string} id
 * @param {(news: News) => void} told
 * @param {() => { closed: boolean, seenAt: Date }} now
 */
export function live(id, told, now) {
  let stop = () => {};
  function listen() {
    stop = follow(id, {
      told,
      lost: () =>
        banner(
          `The connection is lost. What you see is from ${clock(now().seenAt)}; the page updates again when the service is back.`,
        ),
      found: () => banner(null),
      gone: (problem) => banner(`${problem.detail} This page no longer follows it.`, "danger"),
    });
  }
  listen();
  // A browser opens few connections to one service: a page nobody looks at must not keep one
  document.addEventListener("visibilitychange", () => {
    stop();
    if (!document.hidden && !now().closed) listen();
  });
}
