/* What a comparison says, in a sentence; the report writes the same one (web/report/verdict.py). */

import { lowerEnd, number, resolutionOf, scaleOf, settled, sure, upperEnd } from "../format.js";

const NOTHING_LEFT = 1e-9;

/**
 * What a session says of its two systems.
 *
 * @param {Session} session
 * @param {Contrast} contrast
 */
export function sentenceOf(session, contrast) {
  const exact = settled(session);
  const weighted = session.effective_items ? ", counted by weight" : "";
  const body = said(session, contrast, !exact) + weighted;
  if (exact) return `${prefix(session, contrast)}${body}; every item is judged or known.`;
  if (session.rounds.in_interval === 0) return `Nothing is judged yet: ${body}.`;
  return `${prefix(session, contrast)}${body}, ${sure(session.alpha)} sure at every moment.`;
}

/**
 * The interval in words; `told` names its ends beside the estimate.
 *
 * @param {Session} session
 * @param {Contrast} contrast
 * @param {boolean} told
 */
function said(session, { a, b, shift, phrases }, told) {
  const scale = scaleOf(session);
  const nothing = NOTHING_LEFT * (scale.upper - scale.lower);
  const width = resolutionOf(session);
  let { estimate } = session;
  // What lies beside 0 by less than can be computed lies at 0
  let [lower, upper] = [session.lower, session.upper].map((end) =>
    Math.abs(end) <= nothing ? 0 : end,
  );
  let [better, worse] = [b, a];
  if (upper <= 0 && lower < 0) {
    [better, worse] = [a, b];
    [lower, upper, estimate] = [-upper, -lower, -estimate];
  }
  if (lower === 0 && upper === 0) return filled(phrases.equal, { better: a, worse: b });
  const high = upperEnd(upper, width, shift);
  if (lower > 0) {
    const at = number(estimate, width, shift);
    const ends = told ? ` (${lowerEnd(lower, width, shift)} to ${high})` : "";
    return filled(phrases.ahead, { better, worse, at }) + ends;
  }
  const low = upperEnd(Math.abs(lower), width, shift);
  const phrase = lower < 0 ? phrases.open : phrases.level;
  return filled(phrase, { better, worse, low, high });
}

/**
 * @param {Session} session
 * @param {Contrast} contrast
 */
function prefix({ verdict, state }, { a, b, shift, phrases }) {
  if (!verdict) return "";
  if (verdict.answer === "undecided")
    return state === "closed" ? "Undecided. " : "Undecided so far. ";
  if (verdict.answer !== "equivalent") return "";
  const margin = marginOf(verdict.margin, shift);
  return `${a} and ${b} are equivalent: ${filled(phrases.within, { margin })}. `;
}

/**
 * A margin as it was asked for, or in points.
 *
 * @param {number} margin
 * @param {number} shift
 */
function marginOf(margin, shift) {
  return String(Number((margin * 10 ** shift).toPrecision(10)));
}

/**
 * @param {string} phrase
 * @param {Record<string, string>} words
 */
function filled(phrase, words) {
  return phrase.replace(/\{(\w+)\}/g, (_, name) => words[name]);
}
