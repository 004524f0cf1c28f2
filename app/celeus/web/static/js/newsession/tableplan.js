/* What a table of claims will take: labels until all targets are met, and claim by claim. */

import { byId, el, fill } from "../dom.js";
import { count, counted, percent } from "../format.js";

const MOST_SHOWN = 60;

/**
 * Show a plan of a table, of so many `items` that may be drawn.
 *
 * @param {TablePlan} plan
 * @param {number} items
 * @returns {Labels | null} what is kept with a session opened on it
 */
export function showTable(plan, items) {
  const [{ surrogate_right: right, surrogate_useless: useless }] = plan.policies;
  const told = right ?? useless;
  const slow = [...plan.claims].sort((one, other) => lengthOf(other) - lengthOf(one));
  fill(
    byId("plan-result"),
    el(
      "div",
      {},
      el(
        "p",
        { class: "figure" },
        words(told),
        el("small", {}, `until every target is met${detail(told, items)}.`),
      ),
      right === null || useless.labels === null
        ? null
        : el("p", {}, `If the surrogates knew nothing: ${words(useless)}.`),
    ),
    el(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Labels by claim" },
      el(
        "table",
        { class: "table" },
        el(
          "caption",
          {},
          "Labels of the whole session until a claim has its target, slowest first",
        ),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "Claim"),
            el("th", { scope: "col", class: "number" }, "Labels"),
          ),
        ),
        el("tbody", {}, slow.slice(0, MOST_SHOWN).map(row)),
      ),
    ),
    slow.length > MOST_SHOWN
      ? el("p", { class: "quiet-text" }, `And ${count(slow.length - MOST_SHOWN)} more, faster.`)
      : null,
    el(
      "p",
      { class: "quiet-text" },
      `Simulated with ${risks(plan)}. Surrogates that are bad change these numbers, never what the session certifies. `,
      el("a", { href: "/docs/planning" }, "What a plan assumes"),
    ),
  );
  byId("plan-result").hidden = false;
  return told.labels;
}

/** @param {PlannedClaim} claim */
function row(claim) {
  const told = claim.surrogate_right ?? claim.surrogate_useless;
  return el(
    "tr",
    {},
    el(
      "th",
      { scope: "row" },
      el("bdi", {}, claim.value ?? "All items"),
      el("small", {}, el("bdi", {}, claim.metric)),
    ),
    el("td", { class: "number" }, words(told).replace(/ labels?$|^about /g, "")),
  );
}

/** @param {PlannedClaim} claim */
function lengthOf({ surrogate_right: right, surrogate_useless: useless }) {
  const told = right ?? useless;
  return told.labels?.median ?? Infinity;
}

/** @param {TableSimulated} told */
function words(told) {
  if (told.labels) return `about ${counted(told.labels.median, "label")}`;
  return told.more_than ? `more than ${counted(told.more_than, "label")}` : "not simulated";
}

/**
 * @param {TableSimulated} told
 * @param {number} items
 */
function detail(told, items) {
  if (!told.labels) return ": simulating a whole session took too long";
  const { low, high, median } = told.labels;
  const most = `, ${count(low)} to ${count(high)} in ${counted(told.runs, "simulated session")}`;
  const part = `, ${percent(median / items)} of the pool`;
  const short =
    (told.reached ?? 1) < 1 ? `; in ${percent(1 - (told.reached ?? 1))} of them it never was` : "";
  return (low === high ? "" : most) + part + short;
}

/** @param {TablePlan} plan */
function risks({ assumed_risks: assumed }) {
  const told = Object.entries(assumed).map(
    ([name, risk]) => `a mean loss of ${Number(risk.toPrecision(3))} for ${name}`,
  );
  return told.join(", ");
}
