/* Links that show the report to anybody, on the page of a session: make, copy and revoke them. */

import { api, messageOf } from "./api.js";
import { announce, byId, el, fill, given } from "./dom.js";

const LIVES = [
  { word: "until revoked", seconds: null },
  { word: "a day", seconds: 86_400 },
  { word: "a week", seconds: 7 * 86_400 },
  { word: "30 days", seconds: 30 * 86_400 },
];

const path = `/v1/sessions/${given("session").id}/shares`;
const failure = el("p", { class: "error", role: "alert" });
const made = el("div", { class: "stack" });
const links = el("ul", { class: "stack links" });
const life = el(
  "select",
  { id: "share-life" },
  ...LIVES.map(({ word }, place) => el("option", { value: place }, word)),
);
const create = el("button", { class: "button" }, "Make a link");

/** @param {unknown} error */
function fail(error) {
  failure.textContent = error === null ? "" : messageOf(error);
}

/**
 * A text that is shown once, to be copied.
 *
 * @param {string} id
 * @param {string} word
 * @param {string} text
 */
function shown(id, word, text) {
  const field = el("input", { id, readonly: true, value: text });
  const copy = el("button", { type: "button", class: "button small" }, "Copy");
  copy.setAttribute("aria-label", `Copy: ${word}`);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      announce("Copied.");
    } catch {
      field.select();
      announce("Your browser blocked copying; the text is selected: copy it yourself.");
    }
  });
  return el("div", { class: "field" }, el("label", { for: id }, word), field, copy);
}

/** @param {string} at */
function day(at) {
  return new Date(at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

/** @param {Share} one */
function row(one) {
  const until = one.expires_at === null ? "" : `, until ${day(one.expires_at)}`;
  const words = `Made ${day(one.created_at)}${until}`;
  const revoke = el(
    "button",
    { type: "button", class: "button small quiet", "aria-label": `Revoke: ${words}` },
    "Revoke",
  );
  revoke.addEventListener("click", async () => {
    revoke.disabled = true;
    try {
      await api("DELETE", `${path}/${one.id}`);
      announce("The link no longer works.");
      fill(made);
      await list();
      create.focus();
      fail(null);
    } catch (error) {
      fail(error);
      revoke.disabled = false;
    }
  });
  return el("li", {}, `${words} `, revoke);
}

async function list() {
  /** @type {Share[]} */
  const found = (await api("GET", path)).data;
  links.hidden = found.length === 0;
  fill(links, found.map(row));
}

const form = el(
  "form",
  { class: "stack" },
  el("p", { class: "quiet-text" }, "Whoever has a link reads the report, without signing in."),
  el("div", { class: "field" }, el("label", { for: "share-life" }, "It works"), life),
  el("div", {}, create),
);
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  create.disabled = true;
  try {
    const seconds = LIVES[Number(life.value)]?.seconds ?? null;
    /** @type {NewShare} */
    const share = await api("POST", path, { expires_in_seconds: seconds });
    fill(
      made,
      el("p", {}, "Shown this once:"),
      shown("share-url", "Link to the report", share.url),
      shown("share-markdown", "Badge, as Markdown", share.markdown),
    );
    fail(null);
    await list();
    byId("share-url").focus();
  } catch (error) {
    fail(error);
  }
  create.disabled = false;
});
byId("sharing").append(form, failure, made, links);
list().catch(fail);
