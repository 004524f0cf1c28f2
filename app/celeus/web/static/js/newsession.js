/* The page a session is opened on. */

import { api, Problem } from "./api.js";
import { announce, byId, el, fill, only } from "./dom.js";
import { count, counted, sure } from "./format.js";
import { fit, makesTable, offer, tableAsked } from "./newsession/claims.js";
import {
  blame,
  clear,
  fieldValue,
  goToWrong,
  keyring,
  numberIn,
  optionalNumber,
  picked,
  placeOf,
  text,
  Unusable,
} from "./newsession/fields.js";
import { PoolFile } from "./newsession/file.js";
import { swap } from "./live.js";
import { Instructions } from "./newsession/judging.js";
import { listen, PACES, planned, point, Shown } from "./newsession/planner.js";
import { drawable, hasSurrogate, PoolList, severalOf, strategiesOf } from "./newsession/pools.js";
import { watch } from "./silence.js";

const RUNS = 20;
/** Seconds a label, of all judges together: whoever is faster is a program. */
const PROGRAMS_BELOW = 1;
const BOTH = ["sharp", "uniform"];
const AFFECTS_PLAN = [
  "alpha",
  "side",
  "threshold",
  "policy",
  "strategy",
  "budget",
  "risk",
  "margin",
  "question_metric",
  "question_of",
];

/**
 * @type {{
 *   pool: Pool | null,
 *   ask: import("./newsession/file.js").Ask | null,
 *   planning: AbortController | null,
 *   shown: string | null,
 *   view: Shown | null,
 *   reason: string | null,
 *   precise: boolean,
 *   recent: Plan["pace"],
 * }}
 *
 * `ask` asks for plans where the pool is what a file would be, and not made yet.
 * `view` is the plan that is shown, `shown` the settings that it is for; `reason` says why the
 * precision was suggested, and `precise` that somebody has chosen one.
 */
const state = {
  pool: null,
  ask: null,
  planning: null,
  shown: null,
  view: null,
  reason: null,
  precise: false,
  recent: null,
};
const keyOf = keyring();

const instructions = new Instructions();
const list = new PoolList((pool) => choose(pool));
new PoolFile({
  looked: consider,
  unlooked: () => {
    if (state.ask !== null) unplan();
  },
  made: (pool) => {
    list.again();
    choose(pool, state.ask !== null);
  },
});

/**
 * Plan for the pool that a file would be.
 *
 * @param {Pool} pool
 * @param {import("./newsession/file.js").Ask} ask
 */
function consider(pool, ask) {
  state.pool = pool;
  state.ask = ask;
  byId("open-help").textContent = "First create the pool.";
  suit(pool);
  plan();
}

/**
 * @param {Pool} pool
 * @param {boolean} considered whether it is what the file that was planned for would be
 */
function choose(pool, considered = false) {
  state.pool = pool;
  state.ask = null;
  byId("choosing").hidden = true;
  byId("chosen").hidden = false;
  byId("chosen-name").textContent = pool.name;
  swap("chosen", `/sessions/new?pool=${pool.id}`)
    .catch(() => {})
    .finally(() => {
      // Somebody may choose another one meanwhile
      byId("chosen").hidden = !byId("choosing").hidden;
    });
  byId("open", HTMLButtonElement).disabled = false;
  byId("open-help").textContent =
    "The plan is frozen when the session opens; labelling begins then.";
  instructions.of(pool);
  if (!considered) suit(pool);
  announce(`Pool ${pool.name} chosen`);
  byId("other-pool").focus();
  // The plan of the file is that of its pool
  if (!considered || !isPlanned()) plan();
}

/**
 * Ask what can be asked of a pool.
 *
 * @param {Pool} pool
 */
function suit(pool) {
  fillStrategies(pool);
  offer(pool);
  askFor(pool);
  byId("risk-name").textContent = isCompared(pool) ? "Expected difference" : "Expected mean loss";
  byId("risk", HTMLInputElement).placeholder = hasSurrogate(pool)
    ? "As the surrogate predicts"
    : isCompared(pool)
      ? "None"
      : "The middle of the scale";
}

/**
 * Ask what can be asked of this pool: a verdict on two systems, an audit of what is known.
 *
 * @param {Pool} pool
 */
function askFor(pool) {
  const several = severalOf(pool);
  showParts(pool);
  byId("best").hidden = several === null;
  byId("best-words").textContent =
    several === null
      ? ""
      : `Which of these ${several.length} systems is the best: ${several.join(", ")}. The session ends when one is left, or when the others cannot be told from it.`;
  const { a, b } = pool.systems && "a" in pool.systems ? pool.systems : { a: "A", b: "B" };
  const compared = isCompared(pool);
  byId("deciding").hidden = !compared;
  byId("decide-words").textContent =
    `${a} at least as good as ${b}, ${b} at least as good as ${a}, or the two equivalent: whichever is certain first. This does not weaken the guarantee.`;
  byId("target-name").textContent = compared
    ? `The difference, ${a} less ${b}, on`
    : `The ${pool.score?.name ?? "metrics"} of`;
  const known = pool.known?.items ?? 0;
  byId("audit", HTMLInputElement).checked = false;
  byId("audit-words").textContent =
    `Of ${counted(pool.items, "item")}, ${count(known)} are known (${Object.keys(pool.known?.reasons ?? {}).join(", ")}) and never asked for. An audit asks for them like for all others.`;
}

/**
 * Show what is asked of one claim, of several systems, or of a table of claims.
 *
 * @param {Pool} pool
 */
function showParts(pool) {
  const table = makesTable(pool);
  for (const part of document.querySelectorAll("[data-risk]"))
    part.toggleAttribute(
      "hidden",
      severalOf(pool) !== null || (table && part.hasAttribute("data-one")),
    );
  fit(pool);
  byId("precision-field").hidden = severalOf(pool) !== null || pool.metrics !== null;
  const known = pool.known?.items ?? 0;
  byId("audit-choice").hidden = known === 0 || severalOf(pool) !== null || table;
  byId("strategy-field").hidden = strategiesOf(pool).length === 0 || table;
  byId("risk-field").hidden = pool.metrics !== null;
}

/** @param {Pool} pool */
function isCompared(pool) {
  return pool.loss?.kind === "difference";
}

/** Whether the session shall stop with a verdict. */
function decides() {
  return !byId("deciding").hidden && byId("decide", HTMLInputElement).checked;
}

/** @param {Pool} pool */
function fillStrategies(pool) {
  const able = strategiesOf(pool);
  byId("strategy-field").hidden = able.length === 0;
  const own = pool.columns.some((column) => column.startsWith("surrogate."));
  const { options } = byId("strategy", HTMLSelectElement);
  for (const option of options)
    option.hidden = option.disabled = option.value === "" ? !own : !able.includes(option.value);
  const first = [...options].find((option) => !option.disabled);
  if (first !== undefined) first.selected = true;
}

/** Forget the plan and what it was for. */
function unplan() {
  state.pool = state.ask = null;
  state.planning?.abort();
  byId("open-help").textContent = "First choose what to evaluate.";
  byId("plan-result").hidden = true;
  byId("plan-controls").hidden = true;
  fill(byId("plan-problem"));
  byId("plan-told").textContent =
    "Choose what to evaluate, and the session is simulated here before you open it.";
}

function chooseAgain() {
  instructions.of(null);
  byId("chosen").hidden = true;
  byId("choosing").hidden = false;
  byId("open", HTMLButtonElement).disabled = true;
  unplan();
  only(document, "input[name=source]:checked").focus();
}

/* What is asked for; a field that cannot be read is told by its name. */
function claim() {
  if (state.pool !== null && severalOf(state.pool) !== null) return search();
  if (state.pool !== null && makesTable(state.pool)) return tableAsked(state.pool);
  const side = text("side");
  const questions = side === "" ? [] : [{ side, threshold: numberIn("threshold") }];
  /** @type {Record<string, unknown>} */
  const asked = {
    target: picked("target"),
    alpha: numberIn("alpha"),
    precision:
      questions.length > 0 || decides() ? optionalNumber("precision") : numberIn("precision"),
    questions,
  };
  if (decides()) asked.decide = { margin: numberIn("margin") };
  if (byId("audit", HTMLInputElement).checked) asked.audit = true;
  const budget = optionalNumber("budget", { whole: true });
  if (budget !== null) asked.budget = budget;
  const strategy = byId("strategy-field").hidden ? "" : fieldValue("strategy");
  if (strategy !== "") asked.strategy = strategy;
  return asked;
}

/** What is asked of several systems. */
function search() {
  /** @type {Record<string, unknown>} */
  const asked = { best: true, alpha: numberIn("alpha") };
  const budget = optionalNumber("budget", { whole: true });
  if (budget !== null) asked.budget = budget;
  return asked;
}

/**
 * What the planner is asked: without a precision where it shall suggest one.
 *
 * @param {Pool} pool
 * @param {string} policy
 */
function planning(pool, policy) {
  /** @type {Record<string, unknown>} */
  const body = { ...claim(), runs: RUNS };
  if (!makesTable(pool)) {
    body.policies = [policy, ...BOTH.filter((name) => name !== policy)];
    const { questions, decide } = body;
    const asks = decide !== undefined || (Array.isArray(questions) && questions.length > 0);
    if (!state.precise && !asks) delete body.precision;
  }
  const risk = byId("risk-field").hidden ? null : optionalNumber("risk");
  if (risk !== null) body.risk = risk;
  return body;
}

async function plan() {
  const { pool } = state;
  if (pool === null) return;
  state.planning?.abort();
  if (severalOf(pool) !== null) {
    byId("plan-result").hidden = byId("plan-controls").hidden = true;
    byId("plan-told").textContent =
      "How many labels the best of several systems takes is not planned here: that depends on how close they are. `celeus simulate --best` simulates it.";
    return;
  }
  const asking = new AbortController();
  state.planning = asking;
  clear(byId("form"));
  fill(byId("plan-problem"));
  byId("plan-controls").hidden = false;
  const policy = text("policy");
  const wanted = settings();
  try {
    const body = planning(pool, policy);
    working(true);
    const found = await (state.ask ?? planned(pool.id))(body, asking.signal);
    if (state.planning !== asking) return;
    if (found.claims === null) {
      if (!("precision" in body) && !state.precise) suggest(found);
      state.recent = found.pace;
      paced();
    }
    const items = drawable(pool, byId("audit", HTMLInputElement).checked);
    const view = new Shown(found, { policy, items, compared: isCompared(pool) }, asking.signal);
    view.tell(found.claims === null ? found.precision : null, pace());
    await view.shown;
    if (state.planning !== asking) return;
    state.view = view;
    state.shown = wanted;
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

function settings() {
  const audited = byId("audit", HTMLInputElement).checked;
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = document.querySelectorAll("#claims-asked input");
  return JSON.stringify([
    ...[...inputs].map((one) => (one.type === "text" ? one.value : one.checked)),
    ...AFFECTS_PLAN.map((id) => fieldValue(id)),
    // The curve of a single claim tells of other precisions
    state.pool !== null && makesTable(state.pool) ? text("precision") : null,
    picked("target"),
    decides(),
    audited,
  ]);
}

function changed() {
  if (state.pool !== null) showParts(state.pool);
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
  if (place === null || byId(place).closest("[hidden]") !== null) {
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
    const body = { pool_id: state.pool.id, ...claim() };
    if (severalOf(state.pool) === null && !makesTable(state.pool)) body.policy = text("policy");
    const lease = optionalNumber("lease_seconds", { whole: true });
    if (lease !== null) body.lease_seconds = lease;
    if (text("name") !== "") body.name = text("name");
    if (instructions.given !== null) body.instructions = instructions.given;
    if (byId("fixed", HTMLInputElement).checked) body.fixed = true;
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
async function begin() {
  const wanted = new URLSearchParams(location.search).get("pool");
  source();
  if (wanted !== null) {
    try {
      const pool = await api("GET", `/v1/pools/${encodeURIComponent(wanted)}`);
      if (pool.sealed) choose(pool);
    } catch {
      announce("The pool in this address does not exist");
    }
  } else if (!list.some) {
    only(document, "input[name=source][value=file]", HTMLInputElement).checked = true;
    source();
  }
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
byId("form").addEventListener("input", changed);
byId("form").addEventListener("change", changed);
changed();
watch();
await begin();
// Somebody may have chosen a file before this script was there to hear of it
if (byId("file", HTMLInputElement).files?.length) {
  source();
  byId("file").dispatchEvent(new Event("change"));
}
performance.mark("usable");
