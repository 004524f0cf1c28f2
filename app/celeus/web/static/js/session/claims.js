/* The numbers of a table of claims that are looked at first. */

import { el } from "../dom.js";
import { count, counted } from "../format.js";

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
