/* The numbers of a session that are looked at first, and its answers to questions. */

import { el } from "../dom.js";
import { count, counted, lowerEnd, number, percent, progressOf, sure, upperEnd } from "../format.js";
import { savedShare } from "./health.js";

const ANSWERS = { yes: ["yes", "active"], no: ["no", "reached"], undecided: ["undecided", ""] };

/** The row of figures. */
export function figures(session, surrogate) {
  return [
    figure("Estimate", number(session.estimate, session.width), "of the mean loss", true),
    figure("Interval", [lowerEnd(session.lower, session.width), " – ", upperEnd(session.upper, session.width)], `width ${number(session.width, session.width)}; ${sure(session.alpha)} sure at every moment at once`, true),
    precision(session),
    figure("Labels", [count(session.rounds.observed), el("small", {}, ` of ${count(session.items)}`)], labelsNote(session)),
    left(session),
    saved(surrogate),
  ];
}

function figure(name, value, note, wide = false) {
  return el("div", { class: wide ? "wide-figure" : null }, el("dt", {}, name), el("dd", { class: "figure" }, value), el("dd", { class: "note" }, note));
}

function precision(session) {
  const progress = progressOf(session);
  if (progress === null) return figure("Precision", "–", "none asked for");
  const reached = progress === 1;
  return el(
    "div",
    {},
    el("dt", {}, "Precision"),
    el("dd", { class: "figure" }, String(session.precision)),
    el("dd", { class: "note" }, el("progress", { class: "bar", max: 100, value: Math.round(100 * progress), "aria-label": "Progress to the precision" }), reached ? "reached" : `${percent(progress)} of the way`),
  );
}

function labelsNote({ budget, items, rounds }) {
  const waiting = rounds.waiting > 0 ? `${counted(rounds.waiting, "label")} wait for earlier ones` : null;
  const out = rounds.pending > 0 ? `${counted(rounds.pending, "draw")} out` : null;
  const most = budget < items ? `budget ${count(budget)}` : null;
  return [most, out, waiting].filter((part) => part !== null).join("; ") || "no draw is out";
}

function left(session) {
  const { forecast, stopped } = session;
  if (stopped) return figure("Labels left", "0", "the session has stopped");
  if (forecast === null) return figure("Labels left", "–", session.precision === null ? "no precision asked for" : "no forecast yet");
  // Labels since the forecast was made are not left any more
  const since = session.round - forecast.round;
  const [middle, low, high] = [forecast.labels_left, forecast.low, forecast.high].map((labels) => Math.max(labels - since, 0));
  return figure("Labels left", ["≈\u202f", count(middle)], `${count(low)} to ${count(high)}, in 8 of 10 futures`);
}

function saved(surrogate) {
  const share = savedShare(surrogate);
  if (share === null) return figure("Labels saved", "–", "told after some 30 labels");
  const { labels, uniform_labels: uniform, low, high } = surrogate.savings;
  if (!surrogate.used) return figure("Labels saved", "–", "this policy draws uniformly");
  const more = uniform - labels;
  const note = `of some ${count(low)} to ${count(high)} by uniform draws`;
  return figure("Labels saved", ["≈\u202f", more < 0 ? "\u2212" : "", count(Math.abs(more)), el("small", {}, ` ${percent(share)}`)], note);
}

/** Questions with their answers. */
export function answers(session) {
  return session.decisions.map((one) => {
    const [word, kind] = ANSWERS[one.answer];
    const side = one.side === "at_most" ? "at most" : "at least";
    return el(
      "li",
      {},
      el("span", {}, `Is it ${side} ${one.threshold}?`, one.round === null ? null : el("span", { class: "quiet-text" }, ` after ${counted(one.round, "label")}`)),
      el("span", { class: `badge ${kind}` }, word),
    );
  });
}
