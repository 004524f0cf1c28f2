/* The page a session is opened on. */

import { api, Problem } from "./api.js";
import { announce, byId, el, fill, only } from "./dom.js";
import { sure } from "./format.js";
import {
  blame,
  bodyOf,
  clear,
  goToWrong,
  isShown,
  keyring,
  numberIn,
  picked,
  placeOf,
  shownFields,
  text,
  Unusable,
} from "./newsession/fields.js";
import { PoolFile } from "./newsession/file.js";
import { show, swap } from "./live.js";
import { previewInstructions } from "./newsession/judging.js";
import { listen, PACES, planned, point, Shown } from "./newsession/planner.js";
import { PoolList } from "./newsession/pools.js";
import { watch } from "./silence.js";

const RUNS = 20;
/** Seconds a label, of all judges together: whoever is faster is a program. */
const PROGRAMS_BELOW = 1;
const BOTH = ["sharp", "uniform"];
/** What the server shows anew where another pool is chosen. */
const OF_POOL = ["claim", "strategy-field", "risk-field"];
const CLAIM = ["claim", "runs"];
/** What is said at the opening, and changes no plan. */
const OPENING = ["name", "instructions", "subject", "fixed", "lease_seconds"];

/**
 * @type {{
 *   pool: string | null,
 *   ask: import("./newsession/file.js").Ask | null,
 *   asking: AbortController | null,
 *   planning: AbortController | null,
 *   shown: string | null,
 *   view: Shown | null,
 *   reason: string | null,
 *   precise: boolean,
 *   recent: Plan["pace"],
 * }}
 *
 * `pool` is an id; `ask` asks for plans where the pool is what a file would be, and not made yet.
 * `view` is the plan that is shown, `shown` the settings that it is for; `reason` says why the
 * precision was suggested, and `precise` that somebody has chosen one.
 */
const state = {
  pool: null,
  ask: null,
  asking: null,
  planning: null,
  shown: null,
  view: null,
  reason: null,
  precise: false,
  recent: null,
};
const keyOf = keyring();

const list = new PoolList((id) => choose(id));
new PoolFile({
  looked: consider,
  unlooked: () => {
    if (state.ask !== null) unplan();
  },
  made: (id) => {
    list.again();
    choose(id, state.ask !== null);
  },
});

/**
 * Plan for the pool that a file would be, of which this page tells.
 *
 * @param {Document} page
 * @param {import("./newsession/file.js").Ask} ask
 */
function consider(page, ask) {
  for (const id of OF_POOL) show(id, page);
  state.pool = "";
  state.ask = ask;
  byId("open-help").textContent = "First create the pool.";
  plan();
}

/**
 * @param {string} id
 * @param {boolean} considered whether it is what the file that was planned for would be
 */
async function choose(id, considered = false) {
  state.pool = id;
  state.ask = null;
  const parts = considered ? ["chosen"] : ["chosen", ...OF_POOL];
  state.asking?.abort();
  const { signal } = (state.asking = new AbortController());
  try {
    await swap(parts, `/sessions/new?pool=${id}`, { signal });
  } catch (error) {
    if (!signal.aborted) tell(error, byId("plan-problem"));
    return;
  }
  if (signal.aborted) return;
  if (byId("chosen").dataset.pool === id) chosen(considered);
  else {
    unplan();
    list.again();
    announce("This pool is no longer there");
  }
}

/** Go on with the pool that the page shows as chosen. */
function chosen(considered = false) {
  byId("choosing").hidden = true;
  byId("open", HTMLButtonElement).disabled = false;
  byId("open-help").textContent =
    "The plan is frozen when the session opens; labelling begins then.";
  previewInstructions();
  announce(`Pool ${byId("chosen-name").textContent} chosen`);
  byId("other-pool").focus();
  // The plan of the file is that of its pool
  if (!considered || !isPlanned()) plan();
}

/** Whether the session makes several claims. */
function isTable() {
  return makes() === "metrics" || document.querySelector("[name=groups]:checked") !== null;
}

function makes() {
  return byId("claim").dataset.makes;
}

/** Whether the session shall stop with a verdict. */
function decides() {
  return document.querySelector("#decide:checked") !== null;
}

/** What the plan is shown for. */
function wantedOf(/** @type {string} */ policy) {
  const { items, audited } = byId("claim").dataset;
  const drawn = Number(document.querySelector("#audit:checked") === null ? items : audited);
  return { policy, items: drawn, compared: makes() === "difference" };
}

/** Forget the plan and what it was for. */
function unplan() {
  state.pool = state.ask = null;
  state.asking?.abort();
  state.planning?.abort();
  byId("open-help").textContent = "First choose what to evaluate.";
  byId("plan-result").hidden = true;
  byId("plan-controls").hidden = true;
  fill(byId("plan-problem"));
  byId("plan-told").textContent =
    "Choose what to evaluate, and the session is simulated here before you open it.";
}

/** @param {Event} event */
function chooseAgain(event) {
  event.preventDefault();
  byId("chosen").dataset.instructions = "";
  previewInstructions();
  byId("chosen").hidden = true;
  byId("choosing").hidden = false;
  byId("open", HTMLButtonElement).disabled = true;
  unplan();
  only(document, "input[name=source]:checked").focus();
}

/* What is asked for; a field that cannot be read is told by its name. */
function claim(parts = CLAIM) {
  const { questions: question, question_of: of, ...asked } = bodyOf(shownFields(parts));
  const { name, digest } = asked.subject ?? {};
  // An algorithm is always chosen
  if (name === undefined && digest === undefined) delete asked.subject;
  else asked.subject = [asked.subject];
  const asks = question?.side !== undefined;
  if (asks)
    asked[of === "groups" ? "group_questions" : "questions"] = [
      { ...question, threshold: numberIn("threshold") },
    ];
  if (makes() === "best") asked.best = true;
  else if (!isTable() && !asks && !decides()) asked.precision = numberIn("precision");
  return asked;
}

/**
 * What the planner is asked: without a precision where it shall suggest one.
 *
 * @param {string} policy
 */
function planning(policy) {
  /** @type {Record<string, unknown>} */
  const body = { ...claim([...CLAIM, "risk-field"]), runs: RUNS };
  for (const name of ["policy", ...OPENING]) delete body[name];
  if (isTable()) return body;
  if (!state.precise && !body.decide && !body.questions) delete body.precision;
  return { ...body, policies: [policy, ...BOTH.filter((name) => name !== policy)] };
}

async function plan() {
  const { pool } = state;
  if (pool === null) return;
  state.planning?.abort();
  if (makes() === "best") {
    byId("plan-result").hidden = byId("plan-controls").hidden = true;
    byId("plan-told").textContent =
      "How many labels the best of several systems takes is not planned here: that depends on how close they are. `celeus dev simulate --best` simulates it.";
    return;
  }
  const asking = new AbortController();
  state.planning = asking;
  clear(byId("form"));
  fill(byId("plan-problem"));
  byId("plan-controls").hidden = false;
  const policy = text("policy");
  const asked = settings();
  try {
    const body = planning(policy);
    working(true);
    const found = await (state.ask ?? planned(pool))(body, asking.signal);
    if (state.planning !== asking) return;
    if (found.claims === null) {
      if (!("precision" in body) && !state.precise) suggest(found);
      state.recent = found.pace;
      paced();
    }
    const view = new Shown(found, wantedOf(policy), asking.signal);
    view.tell(found.claims === null ? found.precision : null, pace());
    await view.shown;
    if (state.planning !== asking) return;
    state.view = view;
    state.shown = asked;
    // Some may have been changed while it was made
    changed();
  } catch (error) {
    if (asking.signal.aborted || state.planning !== asking) return;
    byId("plan-result").hidden = true;
    byId("plan-told").textContent = "There is no plan for these settings.";
    tell(error, byId("plan-problem"));
  } finally {
    if (state.planning === asking) working(false);
  }
}

/**
 * Take the precision that the planner suggests.
 *
 * @param {Plan} found
 */
function suggest({ suggested_precision: suggested }) {
  byId("precision", HTMLInputElement).value = String(suggested.precision);
  state.reason = suggested.reason;
}

/**
 * Take a precision from the curve.
 *
 * @param {number} precision
 */
function prefer(precision) {
  state.precise = true;
  state.reason = null;
  byId("precision", HTMLInputElement).value = String(precision);
  changed();
}

/**
 * Take a policy that is cheaper, of which the plan tells already.
 *
 * @param {string} policy
 */
async function use(policy) {
  byId("policy", HTMLSelectElement).value = policy;
  await state.view?.use(policy);
  state.shown = settings();
  changed();
}

/** Begin with the project's own pace where it is that of who judges, and say whose it is. */
function paced() {
  const { recent } = state;
  const judges = /** @type {keyof typeof PACES} */ (picked("judges"));
  const other = judges === "people" ? "programs" : "people";
  const whose =
    recent === null || recent.seconds_per_label >= PROGRAMS_BELOW ? "people" : "programs";
  const own = recent !== null && whose === judges ? recent.seconds_per_label : null;
  const seconds = Number((own ?? PACES[judges]).toPrecision(2));
  const field = byId("pace", HTMLInputElement);
  if (field.dataset.judges !== judges) field.value = String(seconds);
  field.dataset.judges = judges;
  const latest =
    recent?.sessions === 1 ? "the latest session" : `the latest ${recent?.sessions} sessions`;
  byId("pace-help").textContent =
    own !== null
      ? `${seconds} s is the pace of ${latest}, of all judges together.`
      : recent === null
        ? `No recent session here tells how long a label takes: ${seconds} s is an assumption.`
        : `The pace of ${latest} is that of ${other}: ${seconds} s is an assumption.`;
}

/** Seconds that a label takes. */
function pace() {
  const given = Number(text("pace").replace(",", "."));
  return given > 0 && Number.isFinite(given) ? given : PACES.people;
}

/** Whether the plan that is shown is for the settings as they are, and tells of this precision. */
function isPlanned() {
  if (state.view === null || byId("plan-result").hidden || settings() !== state.shown) return false;
  const written = text("precision").replace(",", ".");
  const precision = written === "" ? null : Number(written);
  const told = state.view.tell(precision, pace());
  if (told && precision !== null) point(precision);
  return told;
}

/** @param {boolean} busy */
function working(busy) {
  byId("plan", HTMLButtonElement).disabled = busy;
  byId("plan").textContent = busy ? "Simulating…" : "Plan again";
  if (busy)
    byId("plan-told").textContent = "Simulating sessions on this pool; this takes a few seconds.";
}

/** Return the settings that a plan is for; the curve of a single claim tells of other precisions. */
function settings() {
  const apart = isTable() ? OPENING : [...OPENING, "precision"];
  return JSON.stringify(
    shownFields([...CLAIM, "risk-field"])
      .filter(({ name }) => !apart.includes(name.replace(/\..*/s, "")))
      .map(({ name, value }) => [name, value]),
  );
}

function changed() {
  byId("policy-help").textContent =
    byId("policy", HTMLSelectElement).selectedOptions[0].dataset.help ?? "";
  describe();
  if (state.shown === null || byId("plan-result").hidden || state.pool === null) return;
  const stale = !isPlanned();
  byId("planner").classList.toggle("stale", stale);
  const made = state.view?.isRead
    ? "Simulated just now, at other precisions."
    : "Simulated just now with these settings.";
  byId("plan-told").textContent = stale ? "These numbers are for other settings." : made;
}

/* What a width and an alpha mean, in words. */
function describe() {
  const precision = Number(text("precision").replace(",", "."));
  const alpha = Number(text("alpha").replace(",", "."));
  byId("precision-help").textContent =
    precision > 0
      ? `The session stops when the interval is ${round(precision)} wide: the score is known to about ±\u00a0${round(precision / 2)}.${state.reason === null ? "" : ` Suggested: ${state.reason}.`}`
      : "Width of the interval to stop at.";
  byId("alpha-help").textContent =
    alpha > 0 && alpha < 1
      ? `The interval holds with probability ${sure(alpha)}, however often you look.`
      : "Between 0 and 1.";
}

/** @param {number} value */
function round(value) {
  return String(Number(value.toPrecision(4)));
}

/**
 * A refusal stands at the field it names, else where there is room for it.
 *
 * @param {unknown} error
 * @param {Element} elsewhere
 */
function tell(error, elsewhere) {
  if (!(error instanceof Unusable || error instanceof Problem)) throw error;
  const place = error instanceof Unusable ? error.id : placeOf(error.field);
  const message = error instanceof Unusable ? error.message : `${error.detail}${end(error.detail)}`;
  if (place === null || !isShown(byId(place))) {
    fill(
      elsewhere,
      el(
        "p",
        { class: "notice danger" },
        message,
        error instanceof Problem && error.passing ? " Try again in a moment." : "",
      ),
    );
    return false;
  }
  blame(place, message);
  fill(
    elsewhere,
    el("p", { class: "notice warning" }, "One of the settings must be corrected first."),
  );
  return true;
}

/** @param {string} sentence */
function end(sentence) {
  return /[.!?]$/.test(sentence) ? "" : ".";
}

/** @param {SubmitEvent} event */
async function open(event) {
  event.preventDefault();
  if (state.pool === null || byId("open", HTMLButtonElement).disabled) return;
  clear(byId("form"));
  fill(byId("form-problem"));
  byId("open", HTMLButtonElement).disabled = true;
  try {
    /** @type {Record<string, unknown>} */
    const body = { pool_id: state.pool, ...claim() };
    const labels = isPlanned() ? ((await state.view?.labels()) ?? null) : null;
    if (labels !== null) body.planned_labels = labels;
    const headers = { "Idempotency-Key": keyOf(body) };
    const session = await api("POST", "/v1/sessions", body, { headers, retry: 2 });
    location.assign(`/sessions/${session.id}`);
  } catch (error) {
    byId("open", HTMLButtonElement).disabled = false;
    if (tell(error, byId("form-problem"))) goToWrong(byId("form"));
  }
}

function source() {
  const from = picked("source");
  byId("from-pool").hidden = from !== "pool";
  byId("from-file").hidden = from !== "file";
}

/* Whoever follows a link from a pool has chosen already; whoever has no pool brings a file. */
function begin() {
  const { pool } = byId("chosen").dataset;
  if (pool) {
    state.pool = pool;
    chosen();
  } else if (new URLSearchParams(location.search).has("pool")) {
    announce("The pool in this address does not exist");
  }
  source();
}

for (const one of document.querySelectorAll("input[name=source]"))
  one.addEventListener("change", source);
for (const event of ["dragover", "drop"]) {
  // A file that misses the place it was meant for must not replace the page
  window.addEventListener(event, (dragged) => dragged.preventDefault());
}
for (const judges of document.querySelectorAll("input[name=judges]"))
  judges.addEventListener("change", paced);
byId("other-pool").addEventListener("click", chooseAgain);
byId("plan").addEventListener("click", plan);
listen(prefer, use);
byId("form").addEventListener("submit", open);
byId("precision").addEventListener("input", () => {
  state.precise = true;
  state.reason = null;
});
byId("instructions").addEventListener("input", previewInstructions);
byId("form").addEventListener("input", changed);
byId("form").addEventListener("change", changed);
changed();
watch();
begin();
// Somebody may have chosen a file before this script was there to hear of it
if (byId("file", HTMLInputElement).files?.length) {
  source();
  byId("file").dispatchEvent(new Event("change"));
}
performance.mark("usable");
