/* The dashboard: a table of sessions that is kept up to date while somebody sees it. */

import { render } from "../vendor/lit-html/lit-html.js";
import { api, messageOf, Problem } from "./api.js";
import { rowOf, table } from "./dashboard/rows.js";
import { announce, byId, el, fill, given, only } from "./dom.js";
import { counted } from "./format.js";
import { upload } from "./newsession/upload.js";
import { watch } from "./silence.js";

const ROWS_AT_ONCE = 48;
const LOOK_MS = 2_500;
const LOOK_FOR_NEW_MS = 10_000;
const TOGETHER = 4;
const TYPING_MS = 250;
const NEWEST = "-opened";
const MOST_TAGS = 12;

/** @typedef {import("./dashboard/rows.js").Row} Row */
/** @typedef {{ state: SessionState | null, q: string, tag: string | null, order: string, archived: boolean }} Wanted */

/** @type {Wanted} */
const wanted = given("filter");
/** @type {string[]} */
const scopes = given("scopes");
/** @type {Map<string, Row>} */
const rows = new Map();
/** @type {Set<Element>} */
const seen = new Set();
/** @type {string | null} */
let next = null;
/** @type {string | null} */
let editing = null;
let asked = 0;

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) seen.add(entry.target);
    else seen.delete(entry.target);
  }
});

function draw() {
  const view = {
    rows: [...rows.values()],
    order: wanted.order,
    manages: scopes.includes("manage"),
    tagged: (/** @type {string} */ tag) => address({ ...wanted, tag }),
    editing,
    sort,
    edit,
    file,
  };
  render(table(view), byId("sessions"));
  for (const line of lines()) watcher.observe(line);
  byId("sessions").hidden = rows.size === 0;
  byId("empty").hidden = rows.size > 0 || isSearch();
  byId("nothing").hidden = rows.size > 0 || !isSearch();
  byId("more").hidden = next === null;
  byId("order", HTMLSelectElement).value = wanted.order;
}

/** @returns {NodeListOf<HTMLElement>} */
function lines() {
  return byId("sessions").querySelectorAll("tbody tr");
}

function isSearch() {
  return wanted.q !== "" || wanted.tag !== null;
}

/** @param {AnySession} session */
function put(session) {
  const known = rows.get(session.id);
  if (known !== undefined && JSON.stringify(known.session) === JSON.stringify(session))
    return false;
  rows.set(session.id, rowOf(session));
  return true;
}

/**
 * What is wanted, as an address of the service or of the page.
 *
 * @param {Wanted} what
 */
function params({ state, q, tag, order, archived }) {
  const chosen = new URLSearchParams();
  if (state !== null) chosen.set("state", state);
  if (q !== "") chosen.set("q", q);
  if (tag !== null) chosen.set("tag", tag);
  if (archived) chosen.set("archived", "true");
  if (order !== NEWEST) chosen.set("order", order);
  return chosen;
}

/** @param {Wanted} what */
function address(what) {
  const chosen = params(what).toString();
  return chosen === "" ? "/" : `/?${chosen}`;
}

/** @param {Record<string, string>} members */
function query(members) {
  const chosen = params(wanted);
  for (const [name, value] of Object.entries(members)) chosen.set(name, value);
  return `/v1/sessions?${chosen}`;
}

/* Another order or search: the first page of it, and an address that shows it again. */
async function ask() {
  asked += 1;
  const own = asked;
  history.replaceState(null, "", address(wanted));
  try {
    /** @type {SessionPage} */
    const page = await api("GET", query({ limit: String(ROWS_AT_ONCE) }));
    // Who types goes on typing
    if (own !== asked) return;
    rows.clear();
    editing = null;
    take(page);
    announce(`${counted(rows.size, "session")} shown`);
    fill(byId("banner"));
  } catch (problem) {
    if (own === asked) tell(`The sessions could not be loaded: ${messageOf(problem)}`);
  }
}

/** @param {SessionPage} page */
function take(page) {
  for (const session of page.data) put(session);
  next = page.next;
  draw();
}

/** @param {string} order */
function sort(order) {
  wanted.order = order;
  ask();
}

async function more() {
  const button = byId("more", HTMLButtonElement);
  button.disabled = true;
  const before = rows.size;
  const own = asked;
  try {
    const page = await api("GET", query({ after: String(next), limit: String(ROWS_AT_ONCE) }));
    if (own !== asked) return;
    take(page);
    announce(`${counted(rows.size - before, "more session")} shown`);
    const first = lines()[before];
    if (first) only(first, "a", HTMLAnchorElement).focus();
    fill(byId("banner"));
  } catch (problem) {
    tell(`More sessions could not be loaded: ${messageOf(problem)}`);
  } finally {
    button.disabled = false;
  }
}

/** @param {string | null} id */
function edit(id) {
  const before = editing;
  editing = id;
  draw();
  if (id !== null) byId("tags", HTMLInputElement).focus();
  else if (before !== null)
    lineOf(before)
      ?.querySelector(/** @type {"button"} */ (".edit"))
      ?.focus();
}

/** @param {string} id */
function lineOf(id) {
  return [...lines()].find((line) => line.dataset.id === id);
}

/**
 * @param {SubmitEvent} event
 * @param {string} id
 */
async function file(event, id) {
  event.preventDefault();
  const written = byId("tags", HTMLInputElement).value.split(",");
  const tags = [...new Set(written.map((tag) => tag.trim()).filter((tag) => tag !== ""))];
  if (tags.length > MOST_TAGS) {
    tell(`A session has at most ${MOST_TAGS} tags; these are ${tags.length}.`);
    return;
  }
  try {
    const session = await api("PATCH", `/v1/sessions/${id}`, { tags });
    put(session);
    fill(byId("banner"));
    edit(null);
    announce("The tags are saved.");
  } catch (problem) {
    tell(`The tags could not be saved: ${messageOf(problem)}`);
  }
}

/** @param {string} text */
function tell(text) {
  fill(byId("banner"), el("p", { class: "notice warning" }, text));
}

/* Whoever looks sees what is so now; what nobody sees is not asked for. */
async function look() {
  const visible = [...seen].flatMap((line) => {
    const row = rows.get(/** @type {HTMLElement} */ (line).dataset.id ?? "");
    return row === undefined || !line.isConnected || row.session.state === "closed" ? [] : [row];
  });
  let news = false;
  for (let from = 0; from < visible.length; from += TOGETHER) {
    const some = visible.slice(from, from + TOGETHER).map(lookAt);
    news = (await Promise.all(some)).includes(true) || news;
  }
  if (news) draw();
}

/** @param {Row} row */
async function lookAt({ session: { id } }) {
  // The browser sends the ETag along: nothing new costs nothing
  try {
    const session = await api("GET", `/v1/sessions/${id}`);
    return rows.has(id) && put(session);
  } catch (problem) {
    if (!(problem instanceof Problem && problem.status === 404)) throw problem;
    // Deleted by somebody
    return rows.delete(id);
  }
}

async function lookForNew() {
  if (wanted.order !== NEWEST) return;
  const own = asked;
  /** @type {SessionPage} */
  const page = await api("GET", query({ limit: "12" }));
  const newest = rows.keys().next().value ?? "";
  const added = page.data.filter(({ id }) => !rows.has(id) && id > newest);
  if (own !== asked || added.length === 0) return;
  const known = [...rows];
  rows.clear();
  for (const session of added) put(session);
  for (const [id, row] of known) rows.set(id, row);
  draw();
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
  const form = {
    name,
    kind: "zero_one",
    score_name: "accuracy",
    score_better: "higher",
  };
  try {
    const sheet = await (await fetch(button.dataset.file ?? "")).blob();
    const path = `/v1/pool-files?${new URLSearchParams(form)}`;
    const { signal } = new AbortController();
    const made = await upload(path, sheet, "text/csv", { told: () => {}, signal, headers: {} });
    const opening = { pool_id: made.pool.id, name, precision: 0.2 };
    const session = await api("POST", "/v1/sessions", opening);
    location.assign(`${button.dataset.then}${session.id}`);
  } catch (problem) {
    button.disabled = false;
    tell(`The sample could not be made: ${messageOf(problem)}`);
  }
}

/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;
byId("q", HTMLInputElement).addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, TYPING_MS);
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  search();
});
byId("order").addEventListener("change", () => sort(byId("order", HTMLSelectElement).value));
byId("more").addEventListener("click", more);
document.getElementById("sample")?.addEventListener("click", trySample);
take(given("page"));
watch();
every(LOOK_MS, look);
every(LOOK_FOR_NEW_MS, lookForNew);
performance.mark("usable");

function search() {
  wanted.q = byId("q", HTMLInputElement).value.trim();
  ask();
}
