/* What a session will take, simulated by the service before it is opened. */

import { api } from "../api.js";
import { byId, el, fill } from "../dom.js";
import { count, counted, percent } from "../format.js";

const WIDTH = 360;
const NAMES = 98;
const ROW = 42;
const TOP = 6;
const TICKS = 4;
const RETRIES = 2;
/** A service may be set to simulate for ten minutes. */
const PLANNED_MS = 630_000;
/** @typedef {"right" | "useless"} Scenario */

/** @type {Scenario[]} */
const SCENARIOS = ["right", "useless"];
const WORDS = { right: "the surrogate is right", useless: "the surrogate knows nothing" };
const FEW = 5;

/**
 * Ask for a plan; the policy that is chosen comes first.
 *
 * @param {string} poolId
 * @param {unknown} body
 * @param {AbortSignal} signal
 * @returns {Promise<Plan | TablePlan>}
 */
export function planned(poolId, body, signal) {
  return api("POST", `/v1/pools/${poolId}/planning`, body, {
    signal,
    retry: RETRIES,
    wait: PLANNED_MS,
  });
}

/**
 * Show a plan for the policy that is chosen, of so many `items` that may be drawn.
 *
 * @param {Plan} plan
 * @param {string} policy
 * @param {number} items
 * @param {boolean} compared it is about the difference of two systems
 * @returns {Labels | null} what is kept with a session opened on it
 */
export function show(plan, policy, items, compared) {
  const chosen = plan.policies.find((one) => one.policy === policy);
  if (chosen === undefined) throw new Error(`the plan has no policy ${policy}`);
  const rows = plan.policies.filter((one) => one.refused === null);
  fill(
    byId("plan-result"),
    headline(chosen, plan, items),
    chosen.warning === null ? null : el("p", { class: "notice warning" }, sentence(chosen.warning)),
    el("p", {}, smallest(chosen, plan, compared)),
    plan.fixed_sample === null
      ? null
      : el(
          "p",
          {},
          `A paired test that looks only once would take ${counted(plan.fixed_sample, "label")}, if it were told difference and variance beforehand.`,
        ),
    rows.some((row) => row.surrogate_right?.labels || row.surrogate_useless.labels)
      ? el("figure", {}, picture(rows, plan, items), plan.informed ? key() : null)
      : null,
    table(plan, policy),
    el("p", { class: "quiet-text" }, ...assumption(plan, compared)),
  );
  byId("plan-result").hidden = false;
  return chosen.refused === null
    ? (chosen.surrogate_right ?? chosen.surrogate_useless).labels
    : null;
}

/**
 * @param {PolicyPlan} chosen
 * @param {Plan} plan
 * @param {number} items
 */
function headline(chosen, plan, items) {
  if (chosen.refused !== null) {
    const least = chosen.refused.smallest_reachable;
    return el(
      "div",
      { class: "notice warning" },
      el("p", {}, `${chosen.policy} cannot be opened for this: ${chosen.refused.detail}.`),
      least === null
        ? null
        : el("p", {}, `The smallest width it can reach with this pool is ${short(least)}.`),
    );
  }
  const least = chosen.smallest_width.assumed;
  if (plan.precision !== null && least > plan.precision) {
    return el(
      "p",
      { class: "figure" },
      "out of reach",
      el(
        "small",
        {},
        `A width of ${short(plan.precision)} takes more items than this pool has: judging all of them gives about ${short(least)}.`,
      ),
    );
  }
  const told = chosen.surrogate_right ?? chosen.surrogate_useless;
  return el(
    "div",
    {},
    el(
      "p",
      { class: "figure" },
      figure(told),
      el(
        "small",
        {},
        told.labels !== null && plan.informed && usesScores(chosen) ? `if ${WORDS.right}; ` : "",
        details(told, plan, items),
      ),
    ),
    plan.informed && chosen.surrogate_useless.labels !== null && usesScores(chosen)
      ? el("p", {}, `If the surrogate knew nothing: ${figure(chosen.surrogate_useless)}.`)
      : null,
  );
}

/** @param {OpenPlan} chosen */
function usesScores(chosen) {
  return JSON.stringify(chosen.surrogate_right) !== JSON.stringify(chosen.surrogate_useless);
}

/** @param {Simulated} told */
function figure(told) {
  if (told.labels === null)
    return told.more_than === 0 ? "not simulated" : `more than ${counted(told.more_than, "label")}`;
  return `about ${counted(told.labels.median, "label")}`;
}

/**
 * @param {Simulated} told
 * @param {Plan} plan
 * @param {number} items
 */
function details(told, plan, items) {
  if (told.labels === null)
    return "Simulating a whole session took too long. Plan a coarser precision, or try again when the machine is less busy.";
  const parts = [];
  if (told.labels.low !== told.labels.high) {
    parts.push(
      `${count(told.labels.low)} to ${count(told.labels.high)} in ${told.runs < FEW ? "" : "most of "}${counted(told.runs, "simulated session")}`,
    );
  } else if (told.runs < FEW) parts.push(`from only ${counted(told.runs, "simulated session")}`);
  parts.push(`${percent(told.labels.median / items)} of the pool`);
  let all = parts.join(", ");
  if (told.reached < 1) {
    const end = plan.budget < plan.items ? "the budget was spent" : "all items were judged";
    all += `. In ${percent(1 - told.reached)} of them ${end} before the end was reached; the width was then about ${short(told.width.median)}`;
  }
  return `${all}.`;
}

/**
 * @param {PolicyPlan} chosen
 * @param {Plan} plan
 * @param {boolean} compared
 */
function smallest(chosen, plan, compared) {
  if (plan.target === "pool") {
    return compared
      ? "With all items judged the difference is known exactly."
      : "There is no smallest width: with all items judged their mean is known exactly.";
  }
  const floor = chosen.smallest_width;
  if (floor === null) return "";
  return (
    `Even with all ${counted(plan.items, "item")} judged, the interval for all items like these is no narrower than ` +
    `${short(floor.assumed)}, or ${short(floor.middle)} ${compared ? "if the two are equally good" : "if the mean loss is in the middle of the scale"}.`
  );
}

/**
 * @param {Plan} plan
 * @param {boolean} compared
 */
function assumption(plan, compared) {
  const what = compared ? "difference" : "mean loss";
  const why = plan.informed
    ? ""
    : ` Without a surrogate, a ${what} must be assumed${compared ? ", and that the two differ on every item that is asked for: the most labels it can take" : ""}.`;
  return [
    `Simulated with a ${what} of ${short(plan.assumed_risk)}.${why} A bad surrogate changes these numbers, never what the session certifies. `,
    el("a", { href: "/docs/planning" }, "What a plan assumes"),
  ];
}

function key() {
  return el(
    "ul",
    { class: "key" },
    SCENARIOS.map((one) => el("li", { class: one }, WORDS[one])),
  );
}

/**
 * @param {OpenPlan[]} rows
 * @param {Plan} plan
 * @param {number} items
 */
function picture(rows, plan, items) {
  const told = rows
    .flatMap((row) => scenariosOf(row, plan).map(([, found]) => found))
    .filter((found) => found.labels !== null);
  const most = Math.max(1, ...told.map((found) => found.labels.high));
  const step = niceStep(most / TICKS);
  const end = Math.ceil(most / step) * step;
  const x = (/** @type {number} */ labels) => NAMES + ((WIDTH - NAMES - 8) * labels) / end;
  const bottom = TOP + ROW * rows.length;
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, at) => at * step);
  return el(
    "svg",
    {
      class: "picture",
      viewBox: `0 0 ${WIDTH} ${bottom + 36}`,
      role: "img",
      "aria-label": "Labels until the stop, by policy; the table below holds the numbers.",
    },
    rows.map((_, at) =>
      at % 2 === 0
        ? el("rect", { class: "band", x: 0, y: TOP + ROW * at, width: WIDTH, height: ROW })
        : null,
    ),
    ticks.map((at) =>
      el("line", { class: "grid-line", x1: x(at), x2: x(at), y1: TOP, y2: bottom }),
    ),
    items <= end
      ? el("line", { class: "whole", x1: x(items), x2: x(items), y1: TOP, y2: bottom })
      : null,
    ticks.map((at) =>
      el("text", { class: "quiet", x: x(at), y: bottom + 15, "text-anchor": "middle" }, count(at)),
    ),
    el(
      "text",
      { class: "quiet", x: x(end / 2), y: bottom + 31, "text-anchor": "middle" },
      "labels",
    ),
    rows.map((row, at) => marks(row, TOP + ROW * at, x, plan)),
  );
}

/**
 * @param {OpenPlan} row
 * @param {number} top
 * @param {(labels: number) => number} x
 * @param {Plan} plan
 */
function marks(row, top, x, plan) {
  const found = scenariosOf(row, plan);
  const gap = ROW / (found.length + 1);
  return el(
    "g",
    {},
    el("text", { x: 6, y: top + ROW / 2 + 4 }, row.policy),
    found.map(([name, told], at) => mark(name, told, top + gap * (at + 1), x)),
  );
}

/**
 * @param {Scenario} name
 * @param {Simulated} told
 * @param {number} y
 * @param {(labels: number) => number} x
 */
function mark(name, told, y, x) {
  if (told.labels === null)
    return el("text", { class: "quiet", x: x(0) + 4, y: y + 4 }, figure(told));
  const { low, median, high } = told.labels;
  return [
    el("line", { class: name, x1: x(low), x2: x(high), y1: y, y2: y }),
    name === "right"
      ? el("circle", { class: name, cx: x(median), cy: y, r: 5 })
      : el("rect", { class: name, x: x(median) - 4.5, y: y - 4.5, width: 9, height: 9 }),
  ];
}

/**
 * A policy that uses no scores needs the same either way.
 *
 * @param {OpenPlan} row
 * @param {Plan} plan
 * @returns {[Scenario, Simulated][]}
 */
function scenariosOf(row, plan) {
  const { surrogate_right: right } = row;
  if (!plan.informed || right === null || !usesScores(row))
    return [["useless", row.surrogate_useless]];
  return [
    ["right", right],
    ["useless", row.surrogate_useless],
  ];
}

/**
 * @param {Plan} plan
 * @param {string} policy
 */
function table(plan, policy) {
  /** @type {Scenario[]} */
  const shown = plan.informed ? SCENARIOS : ["useless"];
  return el(
    "table",
    { class: "table" },
    el("caption", {}, "Labels until a session stops: the median, and the range of most runs"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Policy"),
        shown.map((one) =>
          el(
            "th",
            { scope: "col", class: "number" },
            plan.informed ? `If ${WORDS[one]}` : "Labels",
          ),
        ),
      ),
    ),
    el(
      "tbody",
      {},
      plan.policies.map((row) => tableRow(row, shown, row.policy === policy)),
    ),
  );
}

/**
 * @param {PolicyPlan} row
 * @param {Scenario[]} shown
 * @param {boolean} isPicked
 */
function tableRow(row, shown, isPicked) {
  const head = el(
    "th",
    { scope: "row" },
    row.policy,
    isPicked ? el("span", { class: "visually-hidden" }, " (chosen)") : null,
  );
  const cells =
    row.refused !== null
      ? el("td", { colspan: shown.length, class: "number" }, refusedWords(row.refused))
      : shown.map((one) => cell(simulated(row, one)));
  return el("tr", { class: isPicked ? "picked" : null }, head, cells);
}

/**
 * @param {OpenPlan} row
 * @param {Scenario} scenario
 */
function simulated(row, scenario) {
  return (scenario === "right" ? row.surrogate_right : null) ?? row.surrogate_useless;
}

/** @param {RefusedPlan["refused"]} refused */
function refusedWords(refused) {
  return refused.smallest_reachable === null
    ? "cannot be opened"
    : `not below ${short(refused.smallest_reachable)}`;
}

/** @param {Simulated} told */
function cell(told) {
  if (told.labels === null)
    return el("td", { class: "number" }, figure(told).replace(/ labels?$/, ""));
  const { low, median, high } = told.labels;
  const reached = told.reached < 1 ? `, ${percent(told.reached)} arrive` : "";
  const most = told.runs === 1 ? "one session" : `${count(low)}\u2013${count(high)}`;
  return el("td", { class: "number" }, count(median), el("small", {}, `${most}${reached}`));
}

/** @param {number} rough */
function niceStep(rough) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return unit * ([1, 2, 5].find((one) => one * unit >= rough) ?? 10);
}

/** @param {number} value */
function short(value) {
  return String(Number(value.toPrecision(3)));
}

/** @param {string} words */
function sentence(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}
