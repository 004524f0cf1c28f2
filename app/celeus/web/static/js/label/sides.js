/* What can be said of two answers, side by side: nobody here knows whose they are. */

import { BOTH_ARE_BAD, lineOf, preferenceOf, preferenceWords } from "./scales.js";

const MOST_KEYED_GRADES = 4;

/** @typedef {[name: string, said: Judgement, ...keys: string[]]} Option */

/** Its key is not B, which a judge may take for the second answer. @type {Option} */
const BOTH_BAD = [BOTH_ARE_BAD, { preference: "both_bad" }, "x"];

/**
 * The form of a judgement of two answers that is no label: which is better, or the loss of each.
 *
 * @param {Comparison} comparison
 * @param {Pick<Task, "score" | "words">} task
 * @returns {Form}
 */
export function sidesFor({ kind, scale, ends }, { score, words }) {
  if (kind === "preference")
    return scale[1] > MOST_KEYED_GRADES ? gradesFor(scale[1]) : preferences(scale[1]);
  if (kind === "zero_one") return buttons(both(words));
  const lines = ["left", "right"].map((side) =>
    lineOf(
      side,
      `${score?.name ?? "Loss"} of the ${side} answer`,
      { kind, scale, ends },
      score,
      words,
    ),
  );
  return { kind: "lines", lines, takes: "losses", asked: false };
}

/**
 * @param {[best: string, worst: string]} words
 * @returns {Option[]}
 */
function both(words) {
  const [good, bad] = words.map((word) => word.toLowerCase());
  return [
    [`Left ${good}, right ${bad}`, { losses: { left: 0, right: 1 } }, "ArrowLeft"],
    [`Both ${good}`, { losses: { left: 0, right: 0 } }, "ArrowUp"],
    [`Both ${bad}`, { losses: { left: 1, right: 1 } }, "ArrowDown"],
    [`Left ${bad}, right ${good}`, { losses: { left: 1, right: 0 } }, "ArrowRight"],
  ];
}

/** @param {number} grades */
function preferences(grades) {
  const all = Array.from({ length: 2 * grades + 1 }, (_, at) => at - grades);
  return buttons(
    all.flatMap((value, at) => {
      const said = preferenceOf(value);
      const arrow = { "-1": "ArrowLeft", 0: "ArrowDown", 1: "ArrowRight" }[value];
      const digit = grades > 1 ? [String(at + 1)] : [];
      /** @type {Option} */
      const option = [preferenceWords(said, grades), said, ...digit, ...(arrow ? [arrow] : [])];
      return value === 0 ? [option, BOTH_BAD] : [option];
    }),
  );
}

/**
 * More grades than there are keys.
 *
 * @param {number} grades
 * @returns {Lines}
 */
function gradesFor(grades) {
  /** @type {FormLine} */
  const line = {
    ...{ key: "preference", name: "Which is better", low: -grades, high: grades, step: 1 },
    ...{ turned: false, ends: ["left is better", "right is better"], choices: null },
  };
  const { options } = buttons([BOTH_BAD]);
  return { kind: "lines", lines: [line], takes: "preference", options, asked: false };
}

/**
 * @param {Option[]} named
 * @returns {Buttons}
 */
function buttons(named) {
  const options = named.map(([name, said, ...keys]) => ({ keys, name, said }));
  return { kind: "buttons", options, asked: false };
}
