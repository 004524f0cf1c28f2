/* Which of several systems no other beats: a ladder on which systems drop out. */

import { el } from "../dom.js";
import { count, counted, lowerEnd, number, upperEnd } from "../format.js";

const RESOLUTION = 10 ** -2.7;
const LEAST_PERCENT = 0.8;

/**
 * How often which place won, where answers were judged in the order shown.
 *
 * @param {BestSession} session
 */
export function placesOf({ best: { places } }) {
  if (!places || places.first + places.last + places.other === 0) return null;
  return `The first answer shown was the best ${counted(places.first, "time")}, the last ${counted(places.last, "time")}, another or several ${counted(places.other, "time")}. The order is drawn for every item; no claim rests on how often one wins.`;
}

/**
 * The systems from the leader down, those that are out last; `points` where they differ by these.
 *
 * @param {BestSession} session
 * @param {boolean} points
 */
export function ladder(session, points) {
  const ranked = session.best.systems.toSorted((one, other) => rank(one) - rank(other));
  return ranked.map((one) => rung(one, session, points));
}

/** @param {RankedSystem} system */
function rank({ state, round, estimate }) {
  if (state === "leading") return Number.NEGATIVE_INFINITY;
  return state === "in" ? (estimate ?? 0) : Number.MAX_SAFE_INTEGER - (round ?? 0);
}

/**
 * @param {RankedSystem} system
 * @param {BestSession} session
 * @param {boolean} points
 */
function rung(system, session, points) {
  const [word, kind] = {
    leading: [session.best.winner === null ? "leads so far" : "none is better", "reached"],
    in: ["still in", "active"],
    out: [`out at label ${count(system.round ?? 0)}`, ""],
  }[system.state];
  return el(
    "li",
    { class: `rung ${system.state}`, dataset: { system: system.name } },
    el(
      "div",
      { class: "row spread" },
      el("bdi", { class: "rung-name" }, system.name),
      el("span", { class: `badge ${kind}` }, word),
    ),
    bar(system, session),
    el("p", { class: "quiet-text" }, behind(system, session, points)),
  );
}

/**
 * How far a system is behind, in words: what is certain first.
 *
 * @param {RankedSystem} system
 * @param {BestSession} session
 * @param {boolean} points
 */
function behind({ state, estimate, lower, upper }, session, points) {
  if (state === "leading") return "The others are measured against it.";
  const width = RESOLUTION * widthOf(session);
  const shift = points ? 2 : 0;
  const unit = points ? " points" : "";
  const about =
    estimate === null
      ? "no label has told it from the leader"
      : `by about ${number(estimate, width, shift)}${unit}`;
  const certain =
    lower === null || upper === null
      ? ""
      : `${lowerEnd(lower, width, shift)} to ${upperEnd(upper, width, shift)}${unit} for certain, `;
  return `Behind: ${certain}${about}.`;
}

/**
 * What is certain of the difference, around no difference in the middle, with the estimate.
 *
 * @param {RankedSystem} system
 * @param {BestSession} session
 */
function bar({ estimate, lower, upper }, session) {
  const most = widthOf(session);
  const at = (/** @type {number} */ value) => 50 * (1 + value / most);
  const from = lower === null ? null : at(lower);
  const width =
    lower === null || upper === null ? 0 : Math.max(at(upper) - at(lower), LEAST_PERCENT);
  return el(
    "svg",
    { class: "span", "aria-hidden": "true" },
    el("line", { class: "scale", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
    el("line", { class: "scale", x1: "50%", x2: "50%", y1: "10%", y2: "90%" }),
    from === null
      ? null
      : el("rect", { class: "within", x: `${from}%`, width: `${width}%`, y: "35%", height: "30%" }),
    estimate === null
      ? null
      : el("circle", { class: "estimate", cx: `${at(estimate)}%`, cy: "50%", r: 4 }),
  );
}

/** @param {BestSession} session */
function widthOf({ scale }) {
  return scale ? scale.upper - scale.lower : 1;
}

/**
 * The numbers that are looked at first.
 *
 * @param {BestSession} session
 */
export function bestFigures({ best, budget, items, known, rounds }) {
  const drawable = items - known;
  const out = rounds.pending > 0 ? `${counted(rounds.pending, "item")} with judges` : null;
  const waiting = rounds.waiting > 0 ? `${count(rounds.waiting)} waiting for an earlier one` : null;
  const most = budget < drawable ? `budget ${count(budget)}` : null;
  const notes = [most, out, waiting].filter((part) => part !== null).join("; ");
  return [
    figure("Still in", String(best.standing.length), ` of ${best.systems.length}`, ""),
    figure("Judged", count(rounds.judged), ` of ${count(drawable)}`, notes),
    figure(
      "Never asked for",
      count(known),
      ` of ${count(items)}`,
      known === 0 ? "" : "all systems gave the same answer",
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
