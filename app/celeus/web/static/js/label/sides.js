/* What can be said of two answers, side by side: nobody here knows whose they are. */

const MOST_KEYED_GRADES = 4;
const STEPS = 100;

/** @typedef {[name: string, said: Judgement, ...keys: string[]]} Option */

/** Its key is not B, which a judge may take for the second answer. @type {Option} */
const BOTH_BAD = ["Both are bad", { preference: "both_bad" }, "x"];

/**
 * The form of a judgement of two answers that is no label: which is better, or the loss of each.
 *
 * @param {Comparison} comparison
 * @returns {Form}
 */
export function sidesFor({ kind, scale: [best, worst] }) {
  if (kind === "preference")
    return worst > MOST_KEYED_GRADES ? gradesFor(worst) : preferences(worst);
  if (kind === "zero_one") return buttons(BOTH);
  const step = (worst - best) / STEPS;
  const lines = ["Loss of the left answer", "Loss of the right answer"];
  return { kind: "scale", lines, low: best, high: worst, step, takes: "losses", asked: false };
}

/** @type {Option[]} */
const BOTH = [
  ["Only left is correct", { losses: { left: 0, right: 1 } }, "ArrowLeft"],
  ["Both are correct", { losses: { left: 0, right: 0 } }, "ArrowUp"],
  ["Both are wrong", { losses: { left: 1, right: 1 } }, "ArrowDown"],
  ["Only right is correct", { losses: { left: 1, right: 0 } }, "ArrowRight"],
];

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
 * @returns {Slider}
 */
function gradesFor(grades) {
  return {
    kind: "scale",
    lines: ["Which is better"],
    low: -grades,
    high: grades,
    step: 1,
    takes: "preference",
    options: buttons([BOTH_BAD]).options,
    asked: false,
  };
}

/**
 * @param {Option[]} named
 * @returns {Buttons}
 */
function buttons(named) {
  const options = named.map(([name, said, ...keys]) => ({ keys, name, said }));
  return { kind: "buttons", options, asked: false };
}

/**
 * The preference that a place on the scale of grades says: below 0 the left answer is better.
 *
 * @param {number} value
 * @returns {Judgement}
 */
export function preferenceOf(value) {
  if (value === 0) return { preference: "tie" };
  const preference = value < 0 ? "left" : "right";
  const grade = Math.abs(value);
  return grade === 1 ? { preference } : { preference, grade };
}

/**
 * A preference in words, of so many grades.
 *
 * @param {Judgement} said
 * @param {number} grades
 */
export function preferenceWords({ preference, grade = 1 }, grades) {
  if (preference === "tie") return "Equally good";
  if (preference === "both_bad") return BOTH_BAD[0];
  const side = preference === "left" ? "Left" : "Right";
  if (grades === 1) return `${side} is better`;
  if (grades === 2) return `${side} is ${grade === 1 ? "" : "much "}better`;
  return `${side} is better by ${grade}`;
}
