/* The dashboard: cards that are kept up to date while somebody sees them. */

import { api, messageOf, Problem } from "./api.js";
import { announce, byId, el, fill, given, only } from "./dom.js";
import {
  count,
  counted,
  current,
  lowerEnd,
  nameOf,
  number,
  progressOf,
  resolutionOf,
  stateOf,
  telling,
  upperEnd,
  widthOf,
} from "./format.js";
import { upload } from "./newsession/upload.js";
import { watch } from "./silence.js";
import { span } from "./span.js";

const CARDS_AT_ONCE = 48;
const LOOK_MS = 2_500;
const LOOK_FOR_NEW_MS = 10_000;
const TOGETHER = 4;

/** @typedef {{ item: HTMLLIElement, session: AnySession }} Card */

/** @type {SessionState | null} */
const state = given("filter");
/** @type {Map<string, Card>} */
const cards = new Map();
/** @type {Set<Element>} */
const seen = new Set();
/** @type {string | null} */
let next = null;

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) seen.add(entry.target);
    else seen.delete(entry.target);
  }
});

/** @param {AnySession} session */
function card(session) {
  const { word, kind } = stateOf(session);
  return el(
    "article",
    { class: "card session" },
    el(
      "div",
      { class: "session-top" },
      el(
        "h2",
        { class: "session-name" },
        el("a", { href: `/sessions/${session.id}` }, el("bdi", {}, nameOf(session))),
      ),
      el("span", { class: `badge ${kind}` }, session.origin ? `${word}, pushed` : word),
    ),
    session.best || session.table
      ? sentenceOf(session)
      : interval(/** @type {Session} */ (session)),
  );
}

/**
 * What a session without a single interval says.
 *
 * @param {AnySession} session
 */
function sentenceOf(session) {
  const asked = session.best
    ? `best of ${session.best.systems.length} systems`
    : counted(session.table?.claims ?? 0, "claim");
  return [
    el("p", { class: "quiet-text" }, `${asked} on ${counted(session.items, "item")}`),
    el("p", {}, session.sentence),
    el("div", { class: "towards" }, el("p", {}, el("span", {}, judged(session)))),
  ];
}

/** @param {AnySession} session */
function judged(session) {
  return `${count(session.rounds.judged)} of ${counted(session.items - (session.known ?? 0), "item")} judged`;
}

/** @param {Session} session */
function interval(session) {
  const progress = progressOf(session);
  const { name, shift, sign } = telling(session);
  const { estimate, lower, upper } = current(session);
  const resolution = resolutionOf(session);
  return [
    el(
      "p",
      { class: "quiet-text" },
      name === null ? null : [el("bdi", {}, name), " · "],
      `${session.policy} · ${session.target} of ${counted(session.items, "item")}`,
    ),
    el(
      "p",
      { class: "claim" },
      el("span", { class: "figure" }, number(estimate, resolution, shift), sign),
      el(
        "span",
        { class: "ends" },
        `${lowerEnd(lower, resolution, shift)} – ${upperEnd(upper, resolution, shift)}${sign}`,
      ),
    ),
    span(session),
    el(
      "div",
      { class: "towards" },
      el("p", {}, el("span", {}, judged(session)), el("span", {}, towards(session))),
      progress === null
        ? null
        : el("progress", {
            class: "bar",
            max: 100,
            value: Math.round(100 * progress),
            "aria-label": `Progress of ${nameOf(session)} towards its precision`,
          }),
    ),
  ];
}

/** @param {Session} session */
function towards(session) {
  if (session.precision === null) return "no precision set";
  const { shift } = telling(session);
  return `width ${number(session.width, resolutionOf(session), shift)} → ${widthOf(session.precision, shift)}`;
}

/**
 * @param {AnySession} session
 * @param {"start" | "end"} where
 */
function put(session, where = "end") {
  const known = cards.get(session.id);
  if (known !== undefined) {
    renew(known, session);
    return known.item;
  }
  const item = el("li", { dataset: { id: session.id } }, card(session));
  cards.set(session.id, { item, session });
  if (where === "start") byId("cards").prepend(item);
  else byId("cards").append(item);
  watcher.observe(item);
  return item;
}

/**
 * @param {Card} known
 * @param {AnySession} session
 */
function renew(known, session) {
  if (JSON.stringify(known.session) === JSON.stringify(session)) return;
  known.session = session;
  const focused = known.item.contains(document.activeElement);
  fill(known.item, card(session));
  if (focused) linkIn(known.item).focus();
}

/** @param {HTMLElement} item */
function linkIn(item) {
  return only(item, "a", HTMLAnchorElement);
}

/** @param {SessionPage} page */
function take(page) {
  const added = page.data.map((session) => put(session));
  next = page.next;
  byId("more").hidden = next === null;
  byId("empty").hidden = cards.size > 0;
  return added;
}

/** @param {Record<string, string>} members */
function query(members) {
  const params = new URLSearchParams(members);
  if (state !== null) params.set("state", state);
  return `/v1/sessions?${params}`;
}

async function more() {
  const button = byId("more", HTMLButtonElement);
  button.disabled = true;
  try {
    const added = take(
      await api("GET", query({ after: String(next), limit: String(CARDS_AT_ONCE) })),
    );
    announce(`${counted(added.length, "more session")} shown`);
    if (added.length > 0) linkIn(added[0]).focus();
    fill(byId("banner"));
  } catch (problem) {
    tell(`More sessions could not be loaded: ${messageOf(problem)}`);
  } finally {
    button.disabled = false;
  }
}

/** @param {string} text */
function tell(text) {
  fill(byId("banner"), el("p", { class: "notice warning" }, text));
}

/* Whoever looks sees what is so now; what nobody sees is not asked for. */
async function look() {
  const visible = [...cards.values()].filter(
    ({ item, session }) => seen.has(item) && session.state !== "closed",
  );
  const rounds = [];
  for (let from = 0; from < visible.length; from += TOGETHER)
    rounds.push(visible.slice(from, from + TOGETHER));
  for (const some of rounds) await Promise.all(some.map(lookAt));
}

/** @param {Card} known */
async function lookAt(known) {
  // The browser sends the ETag along: nothing new costs nothing
  const session = await api("GET", `/v1/sessions/${known.session.id}`);
  renew(known, session);
}

async function lookForNew() {
  /** @type {SessionPage} */
  const page = await api("GET", query({ limit: "12" }));
  for (const session of page.data.reverse()) {
    if (!cards.has(session.id) && newest(session)) put(session, "start");
  }
  byId("empty").hidden = cards.size > 0;
}

/** @param {AnySession} session */
function newest(session) {
  const first = byId("cards").querySelector("li");
  return first === null || session.id > (first.dataset.id ?? "");
}

/**
 * @param {number} wait
 * @param {() => Promise<void>} work
 */
function every(wait, work) {
  let lost = false;
  async function once() {
    if (!document.hidden) {
      try {
        await work();
        if (lost) fill(byId("banner"));
        lost = false;
      } catch (problem) {
        lost = true;
        // Of a silent service the bar tells
        if (!(problem instanceof Problem && problem.status === 0))
          tell(`What you see may be old: ${messageOf(problem)}`);
      }
    }
    setTimeout(once, wait);
  }
  setTimeout(once, wait);
}

/**
 * A pool of the file that comes with the page, and a session on it, open to be labelled.
 *
 * @param {MouseEvent} event
 */
async function trySample(event) {
  const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
  button.disabled = true;
  const name = "Sample: capitals";
  const asked = { name, kind: "zero_one", score_name: "accuracy", score_better: "higher" };
  try {
    const file = await (await fetch(button.dataset.file ?? "")).blob();
    const path = `/v1/pool-files?${new URLSearchParams(asked)}`;
    const { signal } = new AbortController();
    const made = await upload(path, file, "text/csv", { told: () => {}, signal, headers: {} });
    const opening = { pool_id: made.pool.id, name, precision: 0.2 };
    const session = await api("POST", "/v1/sessions", opening);
    location.assign(`${button.dataset.then}${session.id}`);
  } catch (problem) {
    button.disabled = false;
    tell(`The sample could not be made: ${messageOf(problem)}`);
  }
}

byId("more").addEventListener("click", more);
document.getElementById("sample")?.addEventListener("click", trySample);
take(given("page"));
watch();
every(LOOK_MS, look);
every(LOOK_FOR_NEW_MS, lookForNew);
performance.mark("usable");
