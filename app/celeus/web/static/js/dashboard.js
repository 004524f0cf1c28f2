/* The dashboard: a table of sessions that is kept up to date while somebody sees it. */

import { api, messageOf, Problem } from "./api.js";
import { announce, byId, el, fill, only } from "./dom.js";
import { counted } from "./format.js";
import { ready, renew } from "./live.js";
import { upload } from "./newsession/upload.js";
import { watch } from "./silence.js";

const LOOK_MS = 2_500;
/** A look that takes long is repeated seldom: it costs the service as much. */
const REST = 20;
const TYPING_MS = 250;
const MOST_TAGS = 12;
const NEWEST = "-opened";

/** @returns {NodeListOf<HTMLElement>} */
function rows() {
  return byId("sessions").querySelectorAll("tbody tr");
}

/* Another order, a search or more of them: an address that shows it again. */
async function go(/** @type {string} */ address) {
  history.replaceState(null, "", address);
  try {
    await renew();
    announce(`${counted(rows().length, "session")} shown`);
    fill(byId("banner"));
  } catch (problem) {
    tell(`The sessions could not be loaded: ${messageOf(problem)}`);
  }
}

/** @param {string} text */
function tell(text) {
  fill(byId("banner"), el("p", { class: "notice warning" }, text));
}

/**
 * Keep rows where they are, so that nobody clicks on another one than they meant.
 *
 * @param {Document} page
 */
function keepPlaces(page) {
  const body = page.querySelector("#sessions tbody");
  if (!(body instanceof HTMLTableSectionElement)) return;
  const places = new Map([...rows()].map(({ id }, place) => [id, place]));
  const added = byId("order", HTMLSelectElement).value === NEWEST ? -1 : places.size;
  const place = (/** @type {HTMLElement} */ { id }) => places.get(id) ?? added;
  body.append(...[...body.rows].sort((one, other) => place(one) - place(other)));
}

/* Whoever looks sees what is so now. */
async function look() {
  const began = Date.now();
  let took = 0;
  try {
    if (!document.hidden) {
      await renew(document.getElementById("order") ? keepPlaces : null);
      took = Date.now() - began;
      if (lost) fill(byId("banner"));
      lost = false;
    }
  } catch (problem) {
    lost = true;
    // Of a silent service the bar tells
    if (!(problem instanceof Problem && problem.status === 0))
      tell(`What you see may be old: ${messageOf(problem)}`);
  }
  setTimeout(look, Math.max(LOOK_MS, REST * took));
}
let lost = false;

function search() {
  clearTimeout(typing);
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(byId("search", HTMLFormElement)))
    if (value !== "") asked.set(name, String(value).trim());
  return go(`/?${asked}`);
}
/** @type {ReturnType<typeof setTimeout> | undefined} */
let typing;

/** @param {HTMLAnchorElement} link */
async function follow(link) {
  const more = link.id === "more" ? rows().length : null;
  await go(link.href);
  if (more !== null) rows()[more]?.querySelector("a")?.focus();
}

/** @param {HTMLElement} button */
function edit(button) {
  const row = /** @type {HTMLElement} */ (button.closest("tr"));
  const dialog = byId("filing", HTMLDialogElement);
  dialog.dataset.session = row.dataset.id;
  byId("tags-label").textContent = `Tags of ${only(row, "bdi").textContent}, with commas between`;
  byId("tags-error").textContent = "";
  byId("tags", HTMLInputElement).value = button.dataset.tags ?? "";
  dialog.showModal();
}

/** @param {SubmitEvent} event */
async function file(event) {
  if (event.submitter?.getAttribute("value") === "cancel") return;
  event.preventDefault();
  const dialog = byId("filing", HTMLDialogElement);
  const written = byId("tags", HTMLInputElement).value.split(",");
  const tags = [...new Set(written.map((tag) => tag.trim()).filter((tag) => tag !== ""))];
  try {
    if (tags.length > MOST_TAGS)
      throw new Error(`A session has at most ${MOST_TAGS} tags; these are ${tags.length}.`);
    await api("PATCH", `/v1/sessions/${dialog.dataset.session}`, { tags });
    await renew();
    dialog.close();
    announce("The tags are saved.");
  } catch (problem) {
    byId("tags-error").textContent = messageOf(problem);
  }
}

/**
 * A pool of the file that comes with the page, and a session on it, open to be labelled.
 *
 * @param {HTMLButtonElement} button
 */
async function trySample(button) {
  button.disabled = true;
  const name = "Sample: capitals";
  const form = { name, kind: "zero_one", score_name: "accuracy", score_better: "higher" };
  try {
    const sheet = await (await fetch(button.dataset.file ?? "")).blob();
    const path = `/v1/pool-files?${new URLSearchParams(form)}`;
    const { signal } = new AbortController();
    const made = await upload(path, sheet, "text/csv", { told: () => {}, signal, headers: {} });
    const opening = { pool_id: JSON.parse(made).pool.id, name, precision: 0.2 };
    const session = await api("POST", "/v1/sessions", opening);
    location.assign(`${button.dataset.then}${session.id}`);
  } catch (problem) {
    button.disabled = false;
    tell(`The sample could not be made: ${messageOf(problem)}`);
  }
}

// The page is renewed, and what stands on it now may be another element later
const main = byId("main");
main.addEventListener("click", (event) => {
  const target = event.target instanceof Element ? event.target.closest("a, button") : null;
  if (target instanceof HTMLButtonElement) {
    if (target.matches(".edit")) edit(target);
    if (target.id === "sample") trySample(target);
  } else if (target instanceof HTMLAnchorElement && target.matches("[data-here]")) {
    event.preventDefault();
    follow(target);
  }
});
main.addEventListener("input", ({ target }) => {
  if (!(target instanceof HTMLElement) || target.id !== "q") return;
  clearTimeout(typing);
  typing = setTimeout(search, TYPING_MS);
});
main.addEventListener("change", ({ target }) => {
  if (target instanceof HTMLSelectElement) search();
});
main.addEventListener("submit", (event) => {
  if (event.target !== document.getElementById("search")) return;
  event.preventDefault();
  search();
});
document.getElementById("filing")?.addEventListener("submit", file);
ready();
watch();
setTimeout(look, LOOK_MS);
performance.mark("usable");
