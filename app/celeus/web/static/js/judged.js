/* What was judged in a session: a page of the judgements at a time, filtered by the address. */

import { api, messageOf } from "./api.js";
import { byId, el, fill, given } from "./dom.js";
import { ago, counted, outside, preferred, systemName } from "./format.js";
import { watch } from "./silence.js";
import { html, nothing, render } from "../vendor/lit-html/lit-html.js";

const AT_ONCE = 100;
const WHICH = ["above", "commented", "amended", "unjudgeable"];
const FIELDS = ["person", "column", "value", "order"];

/** @type {AnySession} */
const session = given("session");
/** @type {Record<string, string[]>} */
const groups = given("groups");
const form = byId("filter", HTMLFormElement);
let asking = new AbortController();

/** What the address asks for, as the service takes it. */
function asked() {
  const address = new URLSearchParams(location.search);
  if (!address.has("order")) address.set("order", "newest");
  return address;
}

/** @param {string} name */
function control(name) {
  const found = form.elements.namedItem(name);
  return found instanceof HTMLInputElement || found instanceof HTMLSelectElement ? found : null;
}

/** Have the form say what the address says. */
function fromAddress() {
  const query = asked();
  const which = control("which");
  if (which !== null) which.value = WHICH.find((name) => query.has(name)) ?? "";
  for (const name of FIELDS) {
    const field = control(name);
    const value = query.get(name);
    if (field !== null && (value !== null || field instanceof HTMLInputElement))
      field.value = value ?? "";
  }
  offerValues();
}

/** What the form asks for. */
function fromForm() {
  const query = new URLSearchParams();
  const which = control("which")?.value ?? "";
  if (which !== "") query.set(which, which === "above" ? "0" : "true");
  for (const name of FIELDS) {
    const value = control(name)?.value.trim() ?? "";
    if (value !== "" && (name !== "column" || control("value")?.value)) query.set(name, value);
  }
  return query;
}

/** The values of the chosen group column. */
function offerValues() {
  const list = document.getElementById("values");
  if (list === null) return;
  const column = control("column")?.value ?? Object.keys(groups)[0];
  fill(
    list,
    (groups[column ?? ""] ?? []).map((value) => el("option", { value })),
  );
}

async function load() {
  asking.abort();
  const mine = new AbortController();
  asking = mine;
  const query = asked();
  query.set("limit", String(AT_ONCE));
  for (const link of document.querySelectorAll("#downloads a")) {
    const whole = new URLSearchParams(query);
    whole.delete("after");
    whole.delete("limit");
    whole.set("order", "oldest");
    whole.set("format", link.getAttribute("data-format") ?? "csv");
    link.setAttribute("href", `/v1/sessions/${session.id}/labels?${whole}`);
  }
  try {
    /** @type {LabelPage} */
    const page = await api("GET", `/v1/sessions/${session.id}/labels?${query}`, undefined, {
      signal: mine.signal,
    });
    show(page);
  } catch (problem) {
    if (mine.signal.aborted) return;
    byId("told").textContent = `The judgements could not be loaded: ${messageOf(problem)}`;
  }
}

/** @param {LabelPage} page */
function show({ data, next }) {
  render(data.length === 0 ? nothing : table(data), byId("judgements"));
  const more = next === null ? "" : ", and there are more";
  byId("told").textContent =
    data.length === 0
      ? `Nothing here${next === null ? "" : " so far: the next page looks further"}.`
      : `${counted(data.length, "judgement")} on this page${more}.`;
  byId("first", HTMLButtonElement).disabled = !asked().has("after");
  const button = byId("next", HTMLButtonElement);
  button.disabled = next === null;
  button.value = next === null ? "" : String(next);
}

/** @param {Label[]} labels */
function table(labels) {
  return html`<table class="table">
    <thead>
      <tr>
        <th scope="col">Item</th>
        <th scope="col">Judgement</th>
        <th scope="col">Person</th>
        <th scope="col">When</th>
        <th scope="col">Remarks</th>
      </tr>
    </thead>
    <tbody>
      ${labels.map(row)}
    </tbody>
  </table>`;
}

/** @param {Label} label */
function row(label) {
  return html`<tr>
    <th scope="row" class="judged-text">
      <a href="/sessions/${session.id}/judged/${label.round}"><bdi>${label.item}</bdi></a>
    </th>
    <td class="judged-text">${saidOf(label)}</td>
    <td class="judged-text">${whoOf(label)}</td>
    <td>
      <time datetime=${label.judged_at} title=${label.judged_at}
        >${ago(Date.parse(label.judged_at))}</time
      >
    </td>
    <td class="judged-text">${remarksOf(label)}</td>
  </tr>`;
}

/** The person, and the worker where that is another word. @param {Label} label */
function whoOf({ kind, person, worker }) {
  if (person === null) return kind === "outcome" ? "the panel" : nothing;
  const other = worker !== null && !worker.startsWith(person);
  return html`<bdi>${person}</bdi>${other ? html` <small><bdi>${worker}</bdi></small>` : nothing}`;
}

/** @param {Label} label */
function saidOf(label) {
  if (label.unjudgeable !== null) return html`cannot be judged: <bdi>${label.unjudgeable}</bdi>`;
  const losses = Object.entries(label.losses ?? {});
  if (losses.length > 0)
    return losses.map(
      ([name, loss], at) =>
        html`${at > 0 ? " · " : nothing}<bdi>${systemName(session, name)}</bdi>
          ${loss ?? "cannot be told"}`,
    );
  const said = label.preference === null ? "" : `${preferred(session, label)}, `;
  return `${said}loss ${label.loss ?? "unknown"}`;
}

/** @param {Label} label */
function remarksOf(label) {
  const group = Object.values(label.groups ?? {}).join(", ");
  const words = [
    group,
    label.corrections > 0 ? `corrected ${counted(label.corrections, "time")}` : "",
    label.in_interval ? "" : outside(session),
    label.comment === null ? "" : `“${label.comment}”`,
  ];
  return words.filter((one) => one !== "").join(" · ");
}

/** @param {URLSearchParams} query */
function goTo(query) {
  history.pushState(null, "", `?${query}`);
  fromAddress();
  load();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  goTo(fromForm());
});
for (const select of form.querySelectorAll("select"))
  select.addEventListener("change", () => {
    offerValues();
    if (select.id !== "column") goTo(fromForm());
  });
byId("next", HTMLButtonElement).addEventListener("click", () => {
  const query = asked();
  query.set("after", byId("next", HTMLButtonElement).value);
  goTo(query);
  byId("judgements").scrollIntoView();
});
byId("first").addEventListener("click", () => {
  const query = asked();
  query.delete("after");
  goTo(query);
});
window.addEventListener("popstate", () => {
  fromAddress();
  load();
});
fromAddress();
watch();
await load();
performance.mark("usable");
