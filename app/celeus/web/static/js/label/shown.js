/* What can be said of several answers, each shown once: nobody here knows whose they are. */

import { lineOf } from "./scales.js";

const MOST_KEYED = 3;

/**
 * The form of a judgement that gives a loss for every answer shown; where there are none, nothing
 * can be said.
 *
 * @param {Pick<Task, "loss" | "score" | "words">} task
 * @param {unknown[] | null | undefined} answers
 * @returns {Form}
 */
export function shownFor({ loss, score, words }, answers) {
  const places = [...(answers ?? []).keys()];
  if (loss === null || places.length === 0) return { kind: "buttons", options: [], asked: false };
  if (loss.kind === "zero_one" && places.length <= MOST_KEYED) return sets(places, words);
  const name = loss.kind === "zero_one" ? "Answer" : `${score?.name ?? "Loss"} of answer`;
  const lines = places.map((at) => lineOf(at, `${name} ${at + 1}`, loss, score, words));
  return { kind: "lines", lines, takes: "shown", asked: false };
}

/**
 * A button for every set of answers that are right, the smaller sets first.
 *
 * @param {number[]} places
 * @param {[best: string, worst: string]} words
 * @returns {Buttons}
 */
function sets(places, words) {
  const all = Array.from({ length: 2 ** places.length }, (_, set) =>
    places.filter((at) => (set >> at) % 2 === 1),
  ).sort((one, other) => one.length - other.length);
  const options = all.map((right, at) => {
    const said = { losses: places.map((place) => (right.includes(place) ? 0 : 1)) };
    return { keys: [String(at)], name: nameOf(right, places.length, words), said };
  });
  return { kind: "buttons", options, asked: false };
}

/**
 * @param {number[]} right
 * @param {number} answers
 * @param {[best: string, worst: string]} words
 */
function nameOf(right, answers, [best, worst]) {
  if (answers === 1) return right.length === 0 ? worst : best;
  const good = best.toLowerCase();
  if (right.length === 0) return answers === 2 ? `Both ${worst.toLowerCase()}` : `None ${good}`;
  if (right.length === answers) return `${answers === 2 ? "Both" : "All"} ${good}`;
  const numbers = right.map((at) => at + 1).join(" and ");
  return `${right.length === 1 ? "Only " : ""}${numbers} ${good}`;
}
