/* The numbers of a session that are looked at first, and its answers to questions. */

import { el } from "../dom.js";
import {
  count,
  counted,
  lowerEnd,
  number,
  percent,
  progressOf,
  resolutionOf,
  sure,
  upperEnd,
} from "../format.js";

/** @type {Record<Decision["answer"], [word: string, kind: string]>} */
const ANSWERS = { yes: ["yes", "active"], no: ["no", "reached"], undecided: ["undecided", ""] };

/**
 * The row of figures.
 *
 * @param {Session} session
 */
export function figures(session) {
  const resolution = resolutionOf(session);
  return [
    figure("Estimate", number(session.estimate, resolution), "of the mean loss", true),
    figure(
      "Interval",
      [lowerEnd(session.lower, resolution), " – ", upperEnd(session.upper, resolution)],
      `width ${number(session.width, resolution)}; ${sure(session.alpha)} confidence, at all times at once`,
      true,
    ),
    precision(session),
    figure(
      "Judged",
      [count(session.rounds.judged), el("small", {}, ` of ${count(session.items)}`)],
      labelsNote(session),
    ),
    left(session),
  ];
}

/**
 * @param {string} name
 * @param {Child} value
 * @param {Child} note
 * @param {boolean} wide
 */
function figure(name, value, note, wide = false) {
  return el(
    "div",
    { class: wide ? "wide-figure" : null },
    el("dt", {}, name),
    el("dd", { class: "figure" }, value),
    el("dd", { class: "note" }, note),
  );
}

/** @param {Session} session */
function precision(session) {
  const progress = progressOf(session);
  if (progress === null) return figure("Precision", "–", "none set");
  const reached = progress === 1;
  return el(
    "div",
    {},
    el("dt", {}, "Precision"),
    el("dd", { class: "figure" }, String(session.precision)),
    el(
      "dd",
      { class: "note" },
      el("progress", {
        class: "bar",
        max: 100,
        value: Math.round(100 * progress),
        "aria-label": "Progress towards the precision",
      }),
      reached ? "reached" : `${percent(progress)} of the way`,
    ),
  );
}

/** @param {Session} session */
function labelsNote({ budget, items, rounds }) {
  const waiting =
    rounds.waiting > 0
      ? `${count(rounds.in_interval)} in the interval; ${count(rounds.waiting)} waiting for an earlier one`
      : null;
  const out = rounds.pending > 0 ? `${counted(rounds.pending, "draw")} with judges` : null;
  const most = budget < items ? `budget ${count(budget)}` : null;
  return (
    [most, out, waiting].filter((part) => part !== null).join("; ") || "no draws are with judges"
  );
}

/** @param {Session} session */
function left(session) {
  const { forecast, stopped } = session;
  if (stopped) return figure("Labels left", "0", "the session has stopped");
  if (forecast === null)
    return figure(
      "Labels left",
      "–",
      session.precision === null ? "no precision set" : "no forecast yet",
    );
  // Labels since the forecast was made are not left any more
  const labels = Math.max(forecast.labels_left - (session.round - forecast.round), 0);
  return figure("Labels left", ["≈\u202f", count(labels)], "a rough forecast, often too high");
}

/**
 * Questions with their answers.
 *
 * @param {Session} session
 */
export function answers(session) {
  return session.decisions.map((one) => {
    const [word, kind] = ANSWERS[one.answer];
    const side = one.side === "at_most" ? "at most" : "at least";
    return el(
      "li",
      {},
      el(
        "span",
        {},
        `Is it ${side} ${one.threshold}?`,
        one.round === null
          ? null
          : el("span", { class: "quiet-text" }, ` after ${counted(one.round, "label")}`),
      ),
      el("span", { class: `badge ${kind}` }, word),
    );
  });
}
