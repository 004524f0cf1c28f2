/* What a session will take, simulated by the service before it is opened. */

import { api } from "../api.js";
import { byId, el, fill } from "../dom.js";
import { count, counted, percent } from "../format.js";
import { Curve, labelsAt, pointsOf } from "./curve.js";

/** @import { Line } from "./curve.js" */

const MINUTE = 60;
const HOUR = 3600;
const MOST_MINUTES = 90;
/** How often a plan is asked for again while the service is busy. */
export const RETRIES = 2;
/** A service may be set to simulate for ten minutes. */
const PLANNED_MS = 630_000;
/** Share by which labels of two policies may differ and count as equally many. */
const ALIKE = 0.1;
const CHEAP = ["sharp", "uniform"];
/** @typedef {"right" | "useless"} Scenario */

/** @type {Scenario[]} */
const SCENARIOS = ["right", "useless"];
const WORDS = { right: "the surrogate is right", useless: "the surrogate knows nothing" };

/**
 * The way to ask for plans for a pool.
 *
 * @param {string} poolId
 * @returns {(body: unknown, signal: AbortSignal) => Promise<Plan | TablePlan>}
 */
export function planned(poolId) {
  return (body, signal) =>
    api("POST", `/v1/pools/${poolId}/planning`, body, { signal, retry: RETRIES, wait: PLANNED_MS });
}

/** Seconds that a label takes where nobody knows, by who judges. */
export const PACES = { people: 30, programs: 1 };
const PACE = PACES.people;

/**
 * What a plan is shown for: the policy that is chosen, and how many `items` may be drawn.
 *
 * @typedef {{ policy: string, items: number, compared: boolean }} Wanted
 */

/** A plan on the page, at a precision of its curve and at a pace. */
export class Shown {
  #plan;
  #wanted;
  #chosen;
  /** @type {OpenPlan[]} */
  #open;
  /** @type {Line[]} */
  #lines;
  #precision;
  #seconds = PACE;
  #curve;
  #head = el("div", {});
  #table = el("div", {});
  #behind = el("div", {});
  #drawn = false;

  /**
   * Show a plan; `choose` is told of a precision that is chosen on its curve, `use` of a policy that
   * is cheaper than the chosen one.
   *
   * @param {Plan} plan
   * @param {Wanted} wanted
   * @param {(precision: number) => void} choose
   * @param {(policy: string) => void} use
   */
  constructor(plan, wanted, choose, use) {
    const chosen = plan.policies.find((one) => one.policy === wanted.policy);
    if (chosen === undefined) throw new Error(`the plan has no policy ${wanted.policy}`);
    this.#plan = plan;
    this.#wanted = wanted;
    this.#chosen = chosen;
    const open = plan.policies.filter((one) => one.refused === null);
    this.#open = [...open].sort((one) => (one === chosen ? -1 : 0));
    const lines = this.#open.map((one) => ({ policy: one.policy, points: pointsOf(one) }));
    this.#lines = lines.filter(({ points }) => points.length > 1);
    this.#precision = plan.precision;
    this.#curve =
      plan.precision !== null && chosen.refused === null && pointsOf(chosen).length > 1
        ? new Curve(choose)
        : null;
    fill(
      byId("plan-result"),
      this.#head,
      chosen.warning === null
        ? null
        : el("p", { class: "notice warning" }, sentence(chosen.warning)),
      this.#curve?.node ?? null,
      this.#curve === null ? null : key(this.#lines),
      this.#table,
      plan.notes.map((one) => el("p", {}, one)),
      this.#open
        .filter((other) => isCheaper(other, chosen))
        .map(({ policy }) =>
          el(
            "button",
            { type: "button", class: "button small", on: { click: () => use(policy) } },
            `Use ${policy}`,
          ),
        )[0],
      el("p", {}, smallest(chosen, plan, wanted.compared)),
      open.length === 0
        ? null
        : el("details", { class: "behind" }, el("summary", {}, "All numbers"), this.#behind),
      el("p", { class: "quiet-text" }, ...assumption(plan, wanted.compared)),
    );
    byId("plan-result").hidden = false;
  }

  /** Labels at the precision that is shown, to be kept with a session; null where none are known. */
  get labels() {
    return this.#at(this.#chosen)?.labels ?? null;
  }

  /** Whether the precision that is shown was not asked for, but is read off the curve. */
  get isRead() {
    return this.#precision !== this.#plan.precision;
  }

  /**
   * Show what a precision takes at a pace; false where the plan does not reach so far.
   *
   * @param {number | null} precision
   * @param {number} seconds that a label takes
   */
  tell(precision, seconds) {
    const known =
      precision === this.#plan.precision ||
      (precision !== null &&
        this.#chosen.refused === null &&
        labelsAt(pointsOf(this.#chosen), precision) !== null);
    if (!known) return false;
    if (this.#drawn && precision === this.#precision && seconds === this.#seconds) return true;
    this.#precision = precision;
    const renewed = !this.#drawn || seconds !== this.#seconds;
    this.#drawn = true;
    this.#seconds = seconds;
    fill(this.#head, headline(this.#chosen, precision, this.#words()));
    fill(
      this.#table,
      table(this.#plan, this.#wanted.policy, (one) => this.#labels(one)),
    );
    if (renewed) fill(this.#behind, ...behind(this.#plan, this.#open, seconds));
    if (this.#curve === null || precision === null) return true;
    if (renewed) this.#curve.show(this.#lines, precision, seconds);
    else this.#curve.at(precision);
    return true;
  }

  /** @param {PolicyPlan} policy */
  #at(policy) {
    if (policy.refused !== null) return null;
    if (this.#precision === null || !this.isRead)
      return policy.expected === null
        ? null
        : { ...policy.expected, simulated: !policy.expected.extrapolated };
    return labelsAt(pointsOf(policy), this.#precision);
  }

  #words() {
    const found = this.#at(this.#chosen);
    if (found === null) return null;
    const { labels, reached } = found;
    if (labels.high === 0)
      return {
        figure: "no labels",
        details: "What is known beforehand makes the interval so narrow.",
        how: "",
      };
    return {
      figure: `about ${counted(labels.median, "label")}`,
      details: details(labels, reached, this.#plan, this.#wanted.items, this.#seconds),
      how: this.isRead
        ? "Read off the curve; “Plan again” simulates this precision itself."
        : found.simulated
          ? `From ${counted(found.runs, "simulated session")}${this.#plan.informed ? " that suppose the surrogate better and worse than it says" : ""}.`
          : "Drawn out from sessions simulated at coarser precisions.",
    };
  }

  /** @param {OpenPlan} policy */
  #labels(policy) {
    const found = this.#at(policy);
    if (found === null) return el("td", { class: "number", colspan: 2 }, "not simulated");
    const { median, low, high } = found.labels;
    return [
      el("td", { class: "number" }, count(median), el("small", {}, `${count(low)}–${count(high)}`)),
      el("td", { class: "number" }, duration(median * this.#seconds)),
    ];
  }
}

/**
 * Whether a policy is likely to take so many fewer labels that the plan says so.
 *
 * @param {OpenPlan} other
 * @param {PolicyPlan} chosen
 */
function isCheaper({ expected: found, policy }, chosen) {
  if (chosen.refused !== null || chosen.expected === null || found === null) return false;
  const fewer = found.labels.median < (1 - ALIKE) * chosen.expected.labels.median;
  return CHEAP.includes(policy) && found.reached > 0 && fewer;
}

/**
 * The number to plan with: what is expected over all that may be true.
 *
 * @param {PolicyPlan} chosen
 * @param {number | null} precision
 * @param {{ figure: string, details: string, how: string } | null} words
 */
function headline(chosen, precision, words) {
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
  if (precision !== null && least > precision) {
    return el(
      "p",
      { class: "figure" },
      "out of reach",
      el(
        "small",
        {},
        `A width of ${short(precision)} takes more items than this pool has: judging all of them gives about ${short(least)}.`,
      ),
    );
  }
  if (words === null) {
    return el(
      "p",
      { class: "figure" },
      "not simulated",
      el(
        "small",
        {},
        "Simulating a whole session took too long. Plan a coarser precision, or try again when the machine is less busy.",
      ),
    );
  }
  return el(
    "div",
    {},
    el("p", { class: "figure" }, words.figure, el("small", {}, words.details)),
    el("p", { class: "quiet-text" }, words.how),
  );
}

/**
 * @param {Labels} labels
 * @param {number} reached
 * @param {Plan} plan
 * @param {number} items
 * @param {number} seconds
 */
function details({ median, low, high }, reached, plan, items, seconds) {
  const range = low === high ? "" : `${count(low)} to ${count(high)} in most cases, `;
  let all = `${range}${percent(median / items)} of the pool, ${duration(median * seconds)} at ${short(seconds)} s a label.`;
  if (reached < 1) {
    const end = plan.budget < plan.items ? "the budget is spent" : "all items are judged";
    all += ` In ${percent(1 - reached)} of cases ${end} before the end is reached.`;
  }
  return all;
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

/** @param {Line[]} lines */
function key(lines) {
  const classes = ["chosen", "other", "third"];
  return el(
    "ul",
    { class: "key" },
    lines.map((one, at) => el("li", { class: classes[at] }, one.policy)),
    el("li", { class: "range" }, `80\u202f% of the sessions of ${lines[0].policy}`),
  );
}

/**
 * The numbers behind the chart, and the two bounds of what a surrogate may be worth.
 *
 * @param {Plan} plan
 * @param {OpenPlan[]} open
 * @param {number} seconds
 */
function behind(plan, open, seconds) {
  const [first] = open;
  if (first === undefined) return [];
  return [
    pointsOf(first).length > 1
      ? el("div", scrolls("Labels by precision"), curveTable(open, seconds))
      : null,
    el("div", scrolls("The two bounds"), boundsTable(plan, open)),
  ];
}

/** @param {string} name */
function scrolls(name) {
  return { class: "table-scroll", tabindex: 0, role: "region", "aria-label": name };
}

/**
 * @param {OpenPlan[]} open
 * @param {number} seconds
 */
function curveTable(open, seconds) {
  const [chosen, ...others] = open;
  const rows = pointsOf(chosen).map(({ precision, labels, runs }) =>
    el(
      "tr",
      {},
      el("th", { scope: "row", class: "number" }, short(precision)),
      el(
        "td",
        { class: "number" },
        count(labels.median),
        el("small", {}, `${count(labels.low)}–${count(labels.high)}`),
      ),
      el("td", { class: "number" }, short((labels.median * seconds) / HOUR)),
      others.map((one) => {
        const found = labelsAt(pointsOf(one), precision);
        return el("td", { class: "number" }, found === null ? "" : count(found.labels.median));
      }),
      el("td", { class: "number" }, count(runs)),
    ),
  );
  const heads = [
    "Precision",
    chosen.policy,
    "Hours",
    ...others.map((one) => one.policy),
    "Simulated",
  ];
  return el(
    "table",
    { class: "table" },
    el(
      "caption",
      {},
      "Labels by precision: the median and 80\u202f%; hours are those of the median",
    ),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((one) => el("th", { scope: "col", class: "number" }, one)),
      ),
    ),
    el("tbody", {}, rows),
  );
}

/**
 * @param {Plan} plan
 * @param {OpenPlan[]} open
 */
function boundsTable(plan, open) {
  /** @type {Scenario[]} */
  const shown = plan.informed ? SCENARIOS : ["useless"];
  return el(
    "table",
    { class: "table" },
    el(
      "caption",
      {},
      "Two bounds: labels at the precision planned, the median and 80\u202f% of the sessions",
    ),
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
      open.map((row) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, row.policy),
          shown.map((one) => cell(simulated(row, one))),
        ),
      ),
    ),
  );
}

/**
 * The policies beside one another.
 *
 * @param {Plan} plan
 * @param {string} policy
 * @param {(one: OpenPlan) => Child} labels the cells of a policy that can be opened
 */
function table(plan, policy, labels) {
  return el(
    "table",
    { class: "table" },
    el("caption", { class: "visually-hidden" }, "What each policy takes at this precision"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Policy"),
        el("th", { scope: "col", class: "number" }, "Labels"),
        el("th", { scope: "col", class: "number" }, "Time"),
      ),
    ),
    el(
      "tbody",
      {},
      plan.policies.map((row) =>
        el(
          "tr",
          { class: row.policy === policy ? "picked" : null },
          el(
            "th",
            { scope: "row" },
            row.policy,
            row.policy === policy ? el("span", { class: "visually-hidden" }, " (chosen)") : null,
          ),
          row.refused === null
            ? labels(row)
            : el("td", { class: "number", colspan: 2 }, refusedWords(row.refused)),
        ),
      ),
    ),
  );
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
    return el(
      "td",
      { class: "number" },
      told.more_than === 0 ? "not simulated" : `more than ${count(told.more_than)}`,
    );
  const { low, median, high } = told.labels;
  const reached = told.reached < 1 ? `, ${percent(told.reached)} arrive` : "";
  const most = told.runs === 1 ? "one session" : `${count(low)}\u2013${count(high)}`;
  return el("td", { class: "number" }, count(median), el("small", {}, `${most}${reached}`));
}

/**
 * How long something takes, roughly: hours of work, of which a day has fewer than it has hours.
 *
 * @param {number} seconds
 */
function duration(seconds) {
  const minutes = Math.round(seconds / MINUTE);
  if (minutes < 1) return "less than a minute";
  if (minutes <= MOST_MINUTES) return `about ${counted(minutes, "minute")}`;
  return `about ${counted(Math.round(seconds / HOUR), "hour")}`;
}

/** @param {number} value */
function short(value) {
  return String(Number(value.toPrecision(3)));
}

/** @param {string} words */
function sentence(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}
