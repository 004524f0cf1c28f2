/* The plan as a table that people read. */

import { el } from "../dom.js";
import { count, percent, sure, targetOf } from "../format.js";

/** @type {Record<string, string>} */
const BOUNDS = {
  none: "none is needed",
  pairs: "pairs of pool and population",
  exact_pairs: "pairs of pool and population, exact for losses of 0 and 1",
  hoeffding: "Hoeffding",
  kl: "KL (Chernoff)",
  clopper_pearson: "Clopper–Pearson",
  margin: "a margin set by hand",
};

/**
 * The rows of the plan.
 *
 * @param {Opened} opened
 * @param {Session} session
 */
export function plan({ plan: chosen, plan_digest: digest, pool }, session) {
  /** @type {[name: string, value: Child][]} */
  const rows = [
    ["Speaks of", targetOf(session)],
    ["Pool", el("bdi", {}, pool)],
    ["Items", count(chosen.items)],
    [session.systems ? "Differences from" : "Losses from", scaleText(chosen)],
    ["Confidence", `${sure(chosen.alpha)} (alpha ${chosen.alpha})`],
    ["Precision at opening", chosen.precision ?? "none"],
    ["Budget at opening", `${count(chosen.budget)} draws`],
    ["Changes of these", session.fixed ? "none: fixed at opening" : "allowed, and counted"],
    ["Policy", chosen.policy.name],
    ["Strategy", chosen.strategy ?? "the surrogate scores as uploaded"],
    ["Share of uniform draws", percent(chosen.policy.beta)],
    ["From pool to population", BOUNDS[chosen.bound.kind] ?? chosen.bound.kind],
    ["Leases last", `${count(session.lease_seconds)} s`],
    ["Method", chosen.method_version],
    ...basisOf(chosen),
    ["Session", el("code", {}, session.id)],
    ["Plan’s digest", el("code", {}, digest)],
    ["Commitment to the seed", el("code", {}, chosen.commitment)],
  ];
  return planTable(rows);
}

/**
 * Names and values of a plan as a table.
 *
 * @param {[name: string, value: Child][]} rows
 */
export function planTable(rows) {
  return el(
    "table",
    { class: "table plan" },
    el(
      "tbody",
      {},
      rows.map(([name, value]) =>
        el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value)),
      ),
    ),
  );
}

/** @param {Opened["plan"]} chosen */
function scaleText({ lower, upper }) {
  return `${lower} to ${upper}`.replace(/^-/, "\u2212");
}

/** @type {Record<string, string>} */
const SEEN = { yes: "yes", no: "no", unknown: "not known" };

/**
 * The judged session that the pool is based on, and whether its labels were seen.
 *
 * @param {Opened["plan"]} chosen
 * @returns {[name: string, value: Child][]}
 */
function basisOf({ based_on: basis }) {
  if (!basis) return [];
  return [
    ["Judgements carried over from", el("code", {}, basis.session)],
    ["The new version’s makers saw labels", SEEN[basis.labels_seen] ?? basis.labels_seen],
  ];
}
