/* The claims of a table: a bar for each, and metric by group at a glance. */

import { el } from "../dom.js";
import { count, counted, lowerEnd, number, upperEnd } from "../format.js";
import { marks } from "../span.js";

const PERCENT = 2;
const MOST_AT_ONCE = 12;
const NOTHING_LEFT = 1e-9;
const RESOLUTION = 10 ** -2.7;
/** Share of the accent in the darkest cell: figures stay readable on it. */
const DARKEST = 45;

/** @type {Record<string, (one: TableClaim, other: TableClaim) => number>} */
const ORDERS = {
  plan: () => 0,
  doubt: (one, other) => doubt(other) - doubt(one),
  score: (one, other) => one.estimate - other.estimate,
  name: (one, other) => (one.value ?? "").localeCompare(other.value ?? "", "en", { numeric: true }),
};

/** @param {TableClaim} claim */
function doubt({ lower, upper, scale }) {
  return (upper - lower) / (scale.upper - scale.lower);
}

/**
 * The claims about one metric: that about all items, and those of the groups by column, in an
 * order: `plan`, `doubt` (the widest first), `score` (the best first) or `name`. Of many groups
 * the first are shown, and the others of the columns that are `open`.
 *
 * @param {TableClaim[]} claims
 * @param {string} order
 * @param {Set<string>} open
 */
export function claimList(claims, order, open) {
  const columns = [...new Set(claims.map((one) => one.column))];
  return [
    claims.length > 0 ? measured(claims[0]) : null,
    columns.map((column) => {
      const own = claims.filter((one) => one.column === column);
      const sorted = own.toSorted(ORDERS[order]);
      const most = sorted.length > MOST_AT_ONCE + 1 ? MOST_AT_ONCE : sorted.length;
      return [
        column === null ? null : el("h3", {}, "By ", el("bdi", {}, column)),
        el("ol", { class: "claims" }, sorted.slice(0, most).map(row)),
        most < sorted.length
          ? el(
              "details",
              { dataset: { column: column ?? "" }, open: open.has(column ?? "") },
              el("summary", {}, `${count(sorted.length - most)} more`),
              el("ol", { class: "claims" }, sorted.slice(most).map(row)),
            )
          : null,
      ];
    }),
  ];
}

/**
 * What a metric is called, and which way is better.
 *
 * @param {TableClaim} claim
 */
function measured({ score, scale }) {
  const on = score.unit === "share" ? "in percent" : `from ${scale.lower} to ${scale.upper}`;
  return el(
    "p",
    { class: "quiet-text" },
    el("bdi", {}, score.name),
    `, ${score.better} is better, ${on}.`,
  );
}

/** @param {TableClaim} claim */
function row(claim) {
  return el(
    "li",
    { dataset: { metric: claim.metric, value: claim.value ?? "" } },
    el(
      "div",
      { class: "claim-head" },
      el(
        "a",
        { class: "claim-name", href: itemsOf(claim) },
        el("bdi", {}, claim.value ?? "All items"),
      ),
      el("span", { class: "claim-figure" }, figures(claim)),
    ),
    bar(claim),
    el("p", { class: "quiet-text" }, notes(claim)),
  );
}

/**
 * The page of the items that a claim speaks of.
 *
 * @param {TableClaim} claim
 */
function itemsOf({ column, value }) {
  const part = new URLSearchParams(column !== null && value !== null ? { column, value } : {});
  return `${location.pathname}/items?${part}`;
}

/**
 * How the score of a claim is told: the decimals of its width, in percent where it is a share.
 *
 * @param {TableClaim} claim
 */
function telling({ score, scale }) {
  const shift = score.unit === "share" ? PERCENT : 0;
  const whole = scale.upper - scale.lower;
  const width = score.upper - score.lower;
  return {
    shift,
    sign: shift ? "\u202f%" : "",
    width: width > NOTHING_LEFT * whole ? width : RESOLUTION * whole,
  };
}

/** @param {TableClaim} claim */
function figures(claim) {
  const { shift, sign, width } = telling(claim);
  const { estimate, lower, upper } = claim.score;
  const ends = `${lowerEnd(lower, width, shift)} – ${upperEnd(upper, width, shift)}`;
  return [
    el("strong", {}, number(estimate, width, shift) + sign),
    el("span", { class: "claim-ends" }, ` ${ends}${sign}`),
  ];
}

/** @param {TableClaim} claim */
function bar({ score, scale }) {
  return el(
    "svg",
    { class: "span", "aria-hidden": "true" },
    el("line", { class: "scale", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
    ...marks(score, scale),
  );
}

/** @param {TableClaim} claim */
function notes({ answers, items, known, met, rounds, whole }) {
  const parts = [`${count(rounds.judged)} of ${counted(items - known, "item")} judged`];
  if (whole) parts.push("judged whole");
  if (met !== null) parts.push(met ? "target met" : "target not met yet");
  for (const one of answers)
    parts.push(`mean loss ${one.side.replace("_", " ")} ${one.threshold}: ${one.answer}`);
  return parts.join("; ");
}

/**
 * Groups by metrics, one table for every column: the more of a score, the stronger its colour.
 *
 * @param {TableClaim[]} claims
 */
export function heatMap(claims) {
  const grouped = claims.filter((one) => one.column !== null);
  const columns = [...new Set(grouped.map((one) => one.column))];
  return columns.map((column) => {
    const own = grouped.filter((one) => one.column === column);
    const metrics = [...new Set(own.map((one) => one.metric))];
    const values = [...new Set(own.map((one) => one.value))];
    return el(
      "table",
      { class: "table heat" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          el("th", { scope: "col" }, el("bdi", {}, column)),
          metrics.map((metric) => el("th", { scope: "col" }, el("bdi", {}, metric))),
        ),
      ),
      el(
        "tbody",
        {},
        values.map((value) => {
          const cells = own.filter((one) => one.value === value);
          const link = el("a", { href: itemsOf(cells[0]) }, el("bdi", {}, value));
          return el("tr", {}, el("th", { scope: "row" }, link), cells.map(cell));
        }),
      ),
    );
  });
}

/** @param {TableClaim} claim */
function cell(claim) {
  const { score, scale } = claim;
  const { shift, sign, width } = telling(claim);
  const share = (score.estimate - scale.lower) / (scale.upper - scale.lower);
  return el(
    "td",
    { style: { "--share": `${Math.round(DARKEST * share)}%` } },
    el("a", { href: itemsOf(claim) }, number(score.estimate, width, shift) + sign),
  );
}

/**
 * The numbers that are looked at first.
 *
 * @param {TableSession} session
 */
export function tableFigures({ budget, items, known, rounds, table }) {
  const drawable = items - known;
  const out = rounds.pending > 0 ? `${counted(rounds.pending, "item")} with judges` : null;
  const waiting = rounds.waiting > 0 ? `${count(rounds.waiting)} waiting for an earlier one` : null;
  const most = budget < drawable ? `budget ${count(budget)}` : null;
  const told = [most, out, waiting].filter((part) => part !== null).join("; ");
  return [
    figure(
      "Targets met",
      count(table.met),
      ` of ${count(table.wanted)}`,
      `${counted(table.claims, "claim")} in all`,
    ),
    figure("Judged", count(rounds.judged), ` of ${count(drawable)}`, told),
    figure(
      "Metrics",
      count(table.metrics.length),
      "",
      table.groups.length === 0 ? "no groups" : `groups by ${table.groups.join(", ")}`,
    ),
  ];
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} of
 * @param {string} note
 */
function figure(name, value, of, note) {
  return el(
    "div",
    {},
    el("dt", {}, name),
    el("dd", { class: "figure" }, value, el("small", {}, of)),
    el("dd", { class: "note" }, note),
  );
}
