/* The numbers of a session that are looked at first. */

import { el } from "../dom.js";
import {
  count,
  counted,
  current,
  isWide,
  lowerEnd,
  number,
  progressOf,
  resolutionOf,
  sure,
  telling,
  upperEnd,
  widthOf,
} from "../format.js";

const PROTOCOLS = {
  two_then_third: "Two judge every item, and a third where they differ",
  consensus: "Two judge every item, and again while they differ",
};

/**
 * Why there is no estimate.
 *
 * @param {Session} session
 */
function without({ rounds, state }) {
  if (rounds.judged === 0) return "none before the first label";
  return state === "closed" ? "no label is in the interval" : "no label is in the interval yet";
}

/**
 * The row of figures.
 *
 * @param {Session} session
 * @param {Opened} opened
 */
export function figures(session, { contrast, plan }) {
  const resolution = resolutionOf(session);
  const { better, name, shift, sign } = telling(session);
  const { estimate, lower, upper } = current(session);
  const of =
    contrast === null
      ? `${plan.weights ? "weighted " : ""}${name ?? "mean loss"}; ${better} is better`
      : `${contrast.a} less ${contrast.b}: above 0 the latter is better`;
  const estimated =
    session.rounds.in_interval === 0
      ? figure("Estimate", "–", without(session))
      : figure("Estimate", measured(number(estimate, resolution, shift), sign), of);
  estimated.classList.toggle("wide", isWide(session));
  return [
    figure(
      "Interval",
      measured(
        lowerEnd(lower, resolution, shift),
        lower < 0 ? " to " : " – ",
        upperEnd(upper, resolution, shift),
        sign,
      ),
      `width ${number(session.width, resolution, shift)}${shift ? " points" : ""}; ${sure(session.alpha)} confidence, at all times at once`,
      true,
    ),
    estimated,
    precision(session),
    figure(
      "Judged",
      [
        count(session.rounds.judged),
        el("small", {}, ` of ${count(session.items - session.known)}`),
      ],
      [labelsNote(session), knownNote(session, plan), weightsNote(plan)],
    ),
  ];
}

/**
 * A figure with its unit in small letters where that is a word; the sign of percent is none.
 *
 * @param {...string} parts
 */
function measured(...parts) {
  const [words, unit] = parts.join("").split(/(?= points$)/);
  return [words, unit === undefined ? null : el("small", {}, unit)];
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
  const { precision: wanted, width } = session;
  if (wanted === null) return figure("Precision", "–", "none set");
  const { share, told } = progressOf(session);
  const bar =
    share === null
      ? null
      : el("progress", {
          class: "bar",
          max: 100,
          value: Math.round(100 * share),
          "aria-label": "Labels of those likely to be needed",
        });
  const value = measured(widthOf(wanted, telling(session).shift));
  return figure("Precision", value, [bar, width <= wanted ? "reached" : told]);
}

/** @param {Session} session */
function labelsNote({ budget, items, known, rounds }) {
  const waiting =
    rounds.waiting > 0
      ? `${count(rounds.in_interval)} in the interval; ${count(rounds.waiting)} waiting for an earlier one`
      : null;
  const out = rounds.pending > 0 ? `${counted(rounds.pending, "item")} with judges` : null;
  const most = budget < items - known ? `budget ${count(budget)}` : null;
  return [most, out, waiting].filter((part) => part !== null).join("; ") || "nobody holds an item";
}

/**
 * What a pool amounts to whose items count differently.
 *
 * @param {Opened["plan"]} plan
 */
function weightsNote({ weights }) {
  if (!weights) return null;
  const effective = count(Math.round(weights.effective_items));
  return el("span", { class: "known" }, `by weight the pool amounts to ${effective} equal items`);
}

/**
 * Items nobody is asked for, with the reasons.
 *
 * @param {Session} session
 * @param {Opened["plan"]} plan
 */
function knownNote({ known }, { known: stated }) {
  if (!known || !stated) return null;
  const reasons = Object.entries(stated.reasons).map(([reason, items]) =>
    items === known ? reason : `${reason} (${count(items)})`,
  );
  return el(
    "span",
    { class: "known" },
    `${count(known)} more never asked for: ${reasons.join(", ")}`,
  );
}

/**
 * How often which side won, where two answers are judged side by side.
 *
 * @param {Session} session
 */
export function sidesOf({ sides }) {
  if (!sides) return null;
  const { left: first, tie, right } = sides;
  return `Left was better ${times(first)}, right ${times(right)}, and neither ${times(tie)}. Sides are drawn for every item; no claim rests on how often one wins.`;
}

/**
 * What the raters of a panel have said, how far they agree, and who is waited for.
 *
 * @param {Session} session
 */
export function ratersOf({ raters }) {
  if (!raters) return null;
  const { panel, judgements, items, agreement } = raters;
  const alpha = agreement === null ? "not known yet" : agreement.toFixed(2);
  const awaited = panel.filter(({ rounds }) => rounds > 0);
  const waits = awaited.map(({ name, rounds }) => `${name} (${rounds})`).join(", ");
  return `${PROTOCOLS[raters.protocol]}: ${counted(judgements, "judgement")} of ${counted(panel.length, "rater")} so far. Their agreement over the first two judgements of ${counted(items, "item")} (Krippendorff’s alpha) is ${alpha}; no claim rests on it.${waits ? ` It is the turn of ${waits}.` : ""}`;
}

/** @param {number} value */
function times(value) {
  return counted(value, "time");
}
