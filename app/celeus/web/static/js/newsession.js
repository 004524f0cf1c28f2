/* The page a session is opened on: its form is sent as it changes, and the answer shown. */

import { isAborted, messageOf } from "./api.js";
import { announce, byId, el, fill, only } from "./dom.js";
import "./forms.js";
import { markdown } from "./item/markdown.js";
import { show, swap } from "./live.js";
import { PoolFile } from "./newsession/file.js";
import { PoolList } from "./newsession/pools.js";
import { pageOf } from "./newsession/upload.js";
import { watch } from "./silence.js";

const TYPED_MS = 150;
const BUSY_MS = 5_000;
/** What depends on the pool, and is shown anew with a plan. */
const ASKED = ["claim", "runs", "planner"];
/** What depends on what is typed. */
const FOLLOWS = ["planned", "pace", "pace-help", "precision-help", "alpha-help", "policy-help"];

const form = byId("form", HTMLFormElement);
const pool = only(form, "[name=pool_id]", HTMLInputElement);
const precision = byId("precision", HTMLInputElement);
let sending = new AbortController();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let simulating = false;
/** Whether something was changed since a plan was asked for. */
let changed = false;
/** Whether plans are for the pool that a file would be, and that is not made yet. */
let considered = false;
let pressed = false;

const list = new PoolList((id) => choose(id));
const file = new PoolFile({
  looked: (page) => {
    for (const id of [...ASKED, "opener"]) show(id, page);
    considered = true;
    plan();
  },
  unlooked: () => {
    if (considered) unplan();
  },
  made: (id) => {
    list.again();
    choose(id, considered);
  },
});

/** A request in place of the one under way. */
function anew() {
  clearTimeout(timer);
  sending.abort();
  simulating = false;
  return (sending = new AbortController()).signal;
}

/**
 * Send the form, and show elements of the answer.
 *
 * @param {string[]} ids
 * @param {FormData} fields
 */
async function send(ids, fields) {
  const signal = anew();
  simulating = fields.has("simulate");
  const sent = new URLSearchParams(/** @type {any} */ (fields));
  const body = simulating && considered ? file.with(sent) : sent;
  const options = { told: () => {}, signal, headers: {} };
  try {
    const page = await pageOf("/sessions/new/plan", body, "planned", options);
    for (const id of ids) if (!signal.aborted) show(id, page);
  } catch (error) {
    if (!signal.aborted) tell(error);
  }
  if (signal.aborted) return;
  simulating = false;
  // Where it was set by hand, it does not follow
  const slider = document.getElementById("curve-at");
  if (slider instanceof HTMLInputElement && slider !== document.activeElement)
    slider.value = slider.defaultValue;
  if (document.querySelector("#plan-problem [data-again]")) timer = setTimeout(plan, BUSY_MS);
  else if (changed) follow();
}

/** Have what is shown follow from the fields as they are; a plan that is under way first arrives. */
function follow() {
  changed = simulating;
  if (simulating) return;
  clearTimeout(timer);
  timer = setTimeout(() => send(FOLLOWS, new FormData(form)), TYPED_MS);
}

function plan() {
  if (pool.value === "" && !considered) return;
  changed = false;
  const fields = new FormData(form);
  fields.append("simulate", "true");
  send(ASKED, fields);
  byId("plan-told").textContent = "Simulating sessions on this pool; this takes a few seconds.";
  byId("plan").textContent = "Simulating…";
  byId("plan", HTMLButtonElement).disabled = true;
}

/** @param {unknown} error */
function tell(error) {
  if (isAborted(error)) return;
  fill(byId("plan-problem"), el("p", { class: "notice danger" }, messageOf(error)));
  byId("plan-told").textContent = "";
  byId("plan").textContent = "Plan again";
  byId("plan", HTMLButtonElement).disabled = false;
}

/**
 * @param {string} id
 * @param {boolean} planned whether it is what the file that was planned for would be
 */
async function choose(id, planned = false) {
  considered = false;
  const signal = anew();
  try {
    const parts = ["chosen", "opener", ...(planned ? [] : ASKED)];
    await swap(parts, `/sessions/new?pool=${id}`, { signal });
  } catch (error) {
    if (!signal.aborted) tell(error);
    return;
  }
  if (signal.aborted) return;
  if (pool.value === id) chosen();
  else {
    list.again();
    announce("This pool is no longer there");
  }
}

/** Go on with the pool that the page shows as chosen. */
function chosen() {
  byId("choosing").hidden = true;
  preview();
  announce(`Pool ${byId("chosen-name").textContent} chosen`);
  byId("other-pool").focus();
  // The plan of the file is that of its pool
  const { value } = only(form, "[name=plan]", HTMLInputElement);
  if (value === "" || byId("planned").matches(".stale")) plan();
}

/** Forget the pool, and the plan for it. */
function unplan() {
  anew();
  considered = false;
  pool.value = only(form, "[name=plan]", HTMLInputElement).value = "";
  byId("open", HTMLButtonElement).disabled = byId("plan-controls").hidden = true;
  byId("open-help").textContent = "First choose what to evaluate.";
  fill(byId("plan-problem"));
  follow();
}

/** Show what judges will be told: the instructions of the session, or those of its pool. */
function preview() {
  const own = byId("instructions", HTMLTextAreaElement).value;
  const words = own.trim() === "" ? (byId("chosen").dataset.instructions ?? "") : own;
  byId("instructions-look").hidden = words === "";
  byId("instructions-whose").textContent =
    words === own ? "As judges will see them" : "As judges will see them: those of the pool";
  fill(byId("instructions-shown"), words === "" ? null : markdown(words));
}

/**
 * Take the precision at a place of the curve.
 *
 * @param {Element | null | undefined} spot
 */
function take(spot) {
  if (!(spot instanceof SVGElement) || !spot.dataset.precision) return;
  precision.value = spot.dataset.precision;
  follow();
}

for (const event of ["dragover", "drop"]) {
  // A file that misses the place it was meant for must not replace the page
  window.addEventListener(event, (dragged) => dragged.preventDefault());
}
byId("other-pool").addEventListener("click", (event) => {
  event.preventDefault();
  byId("chosen").hidden = true;
  byId("choosing").hidden = false;
  byId("chosen").dataset.instructions = "";
  preview();
  unplan();
  only(document, "input[name=source]:checked").focus();
});
form.addEventListener("input", ({ target }) => {
  const field = /** @type {HTMLInputElement} */ (target);
  if (field.closest("#choosing")) return;
  if (field.id === "curve-at") take(form.querySelectorAll("[data-precision]")[Number(field.value)]);
  if (field.id === "instructions") preview();
  follow();
});
// What is wrong with the opening stays until something is changed
form.addEventListener("submit", anew);
const planner = byId("planner");
planner.addEventListener("click", ({ target }) => {
  if (!(target instanceof HTMLElement)) return;
  if (target.id === "plan") plan();
  if (!target.dataset.use) return;
  byId("policy", HTMLSelectElement).value = target.dataset.use;
  follow();
});
planner.addEventListener("pointerdown", ({ target }) => {
  pressed = true;
  take(/** @type {Element} */ (target));
});
addEventListener("pointerup", () => (pressed = false));
planner.addEventListener("pointermove", ({ clientX, clientY }) => {
  if (pressed) take(document.elementFromPoint(clientX, clientY));
});
watch();
if (pool.value !== "") chosen();
else if (new URLSearchParams(location.search).has("pool"))
  announce("The pool in this address does not exist");
// Somebody may have chosen a file before this script was there to hear of it
if (byId("file", HTMLInputElement).files?.length) byId("file").dispatchEvent(new Event("change"));
performance.mark("usable");
