/* The items that a claim speaks of, with what the judges said of them. */

import { api, messageOf } from "./api.js";
import { byId, el, fill, given, only } from "./dom.js";
import { counted } from "./format.js";
import { drawView } from "./item/payload.js";
import { watch } from "./silence.js";

const AT_ONCE = 50;
/** As many items as are on the page share the room of so many less: most are short. */
const CROWD = 10;

/** @type {TableSession} */
const session = given("session");
const address = new URLSearchParams(location.search);
/** @type {number | null} */
let next = null;
let asking = new AbortController();

/** What is asked for, as the service takes it. */
function asked() {
  const query = new URLSearchParams({ limit: String(AT_ONCE) });
  for (const name of ["column", "value", "judged"]) {
    const value = address.get(name);
    if (value !== null) query.set(name, value);
  }
  if (next !== null) query.set("after", String(next));
  return query;
}

async function load() {
  asking.abort();
  const mine = new AbortController();
  asking = mine;
  byId("more", HTMLButtonElement).disabled = true;
  try {
    /** @type {ClaimItems} */
    const page = await api("GET", `/v1/sessions/${session.id}/items?${asked()}`, undefined, {
      signal: mine.signal,
    });
    const first = next === null;
    next = page.next;
    if (first) fill(byId("items"));
    byId("items").append(...page.data.map(row));
    byId("more").hidden = next === null;
    const shown = counted(byId("items").childElementCount, "item");
    byId("told").textContent = next === null ? `${shown}.` : `The first ${shown}.`;
  } catch (problem) {
    if (mine.signal.aborted) return;
    byId("told").textContent = `The items could not be loaded: ${messageOf(problem)}`;
  } finally {
    if (asking === mine) byId("more", HTMLButtonElement).disabled = false;
  }
}

/** @param {ClaimItem} item */
function row(item) {
  return el(
    "li",
    { class: "card item" },
    el(
      "div",
      { class: "claim-head" },
      el("bdi", { class: "claim-name" }, item.id),
      el("span", { class: "quiet-text" }, saidOf(item)),
    ),
    drawView(
      { round: 0, item, left: null, right: null, answers: null, expires_at: "" },
      false,
      CROWD,
    ),
  );
}

/** @param {ClaimItem} item */
function saidOf({ losses, known }) {
  const { metrics } = session.table;
  if (losses === null && known.length < metrics.length) return "not judged";
  return metrics.map(({ metric }, at) => {
    const loss = losses?.[metric] ?? null;
    const words = loss !== null ? loss : known.includes(metric) ? "known" : "cannot be told";
    return [at > 0 ? " · " : null, el("bdi", {}, metric), ` ${words}`];
  });
}

const [column, value] = [address.get("column"), address.get("value")];
if (column !== null && value !== null)
  fill(byId("part"), el("bdi", {}, value), " ", el("small", {}, el("bdi", {}, column)));
const chosen = `input[name=which][value="${CSS.escape(address.get("judged") ?? "")}"]`;
(document.querySelector(chosen) ?? only(document, "input[name=which]")).setAttribute("checked", "");
for (const input of document.querySelectorAll("input[name=which]"))
  input.addEventListener("change", () => {
    const which = only(document, "input[name=which]:checked", HTMLInputElement).value;
    if (which === "") address.delete("judged");
    else address.set("judged", which);
    history.replaceState(null, "", `?${address}`);
    next = null;
    load();
  });
byId("more").addEventListener("click", load);
watch();
await load();
performance.mark("usable");
