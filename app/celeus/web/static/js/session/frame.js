/* What the pages of all sessions have: the answer, a banner, who is judging, and the stream. */

import { api, messageOf } from "../api.js";
import { byId, el, fill, given } from "../dom.js";
import { ago, counted, stateOf } from "../format.js";
import { stalled, watch } from "../silence.js";
import { follow } from "./follow.js";
import { held, workers } from "./workers.js";

const LOOK_MS = 2_000;
const PATIENCE_MS = 30_000;

/** @type {Record<"yes" | "no" | "undecided", string>} */
const KINDS = { yes: "reached", no: "danger", undecided: "" };

let waiting = { first: 0, since: 0 };

/**
 * The badge, the line below the name, the answer in the service's words, and the warnings.
 *
 * @param {AnySession} session
 * @param {string} pool
 * @param {string} words
 */
export function head(session, pool, words) {
  const { word: state, kind } = stateOf(session);
  const word = session.archived ? `${state}, archived` : state;
  const badge = byId("state");
  badge.className = `badge ${kind}`;
  if (badge.textContent !== word) badge.textContent = word;
  fill(
    byId("about"),
    `${words} “`,
    el("bdi", {}, pool),
    `” · ${counted(session.items, "item")} · ${session.origin ? "pushed" : "opened"} ${ago(Date.parse(session.created_at))}`,
    session.owner ? [" by ", el("bdi", {}, session.owner)] : null,
  );
  answer(session);
  fill(
    byId("warnings"),
    session.warnings.map((warning) => el("p", { class: "notice warning" }, warning)),
  );
}

/** @param {AnySession} session */
function answer({ score, sentence, words }) {
  say("sentence", sentence);
  byId("sentence").classList.toggle("scored", sentence.startsWith(score?.name ?? "\0"));
  say("progress", words.progress);
  say("holds", words.holds);
  const place = byId("answers");
  const told = JSON.stringify(words.answers);
  if (place.dataset.told === told) return;
  place.dataset.told = told;
  const rows = words.answers.map((one) =>
    el(
      "li",
      {},
      el("span", {}, `${one.question} `),
      el("span", { class: `badge ${KINDS[one.given]}` }, one.answer),
    ),
  );
  fill(place, rows);
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

/** @param {AnySession} session */
export async function lookAtWorkers(session) {
  const path = `/v1/sessions/${session.id}`;
  const focused = byId("workers").contains(document.activeElement);
  const page = await api("GET", `${path}/workers?limit=50`, undefined, { retry: 0 });
  fill(byId("workers"), workers(page));
  showHeld(path, waitedFor(held(page, session)));
  /** @type {HTMLElement | null} */
  const scroll = byId("workers").querySelector(".table-scroll");
  if (focused) scroll?.focus();
}

/**
 * What labels have waited for longer than an item usually takes; null where nothing is.
 *
 * @param {ReturnType<typeof held>} found
 */
function waitedFor(found) {
  if (found === null) return null;
  if (found.first !== waiting.first) waiting = { first: found.first, since: Date.now() };
  return Date.now() - waiting.since < PATIENCE_MS ? null : found;
}

/**
 * What labels wait for, and a button that takes it from who holds it.
 *
 * @param {string} path
 * @param {ReturnType<typeof held>} found
 */
function showHeld(path, found) {
  const place = byId("held");
  const words = found?.words ?? "";
  if (place.dataset.words === words) return;
  place.dataset.words = words;
  if (found === null) {
    fill(place);
    return;
  }
  /** @type {string[]} */
  const scopes = given("scopes");
  const free = async () => {
    try {
      await api("POST", `${path}/release`, { rounds: found.rounds });
      fill(place, el("p", { class: "notice" }, "Whoever asks next gets it."));
    } catch (error) {
      fill(place, el("p", { class: "notice danger" }, messageOf(error)));
    }
  };
  const button =
    found.rounds.length > 0 && scopes.includes("manage")
      ? el(
          "button",
          { type: "button", class: "button small", on: { click: free } },
          "Give it to whoever asks next",
        )
      : null;
  fill(place, el("p", { class: "notice warning" }, found.words), button);
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
      // The page tells when the service is silent; what is shown stays until it answers again
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
 * @param {() => boolean} closed
 */
export function live(id, told, closed) {
  let stop = () => {};
  function listen() {
    stop = follow(id, {
      told,
      lost: stalled,
      found: () => stalled(null),
      gone: ({ detail }) => {
        const words = `${detail} This page no longer follows it.`;
        fill(byId("banner"), el("p", { class: "notice danger" }, words));
      },
    });
  }
  watch();
  listen();
  // A browser opens few connections to one service: a page nobody looks at must not keep one
  document.addEventListener("visibilitychange", () => {
    stop();
    if (!document.hidden && !closed()) listen();
  });
}
