/* What can be said of several answers, each shown once: nobody here knows whose they are. */

const MOST_KEYED = 3;
const STEPS = 100;

/**
 * The form of a judgement that gives a loss for every answer shown; where there are none, nothing
 * can be said.
 *
 * @param {Task["loss"]} loss
 * @param {unknown[] | null | undefined} answers
 * @returns {Form}
 */
export function shownFor(loss, answers) {
  const places = [...(answers ?? []).keys()];
  if (loss === null || places.length === 0) return { kind: "buttons", options: [], asked: false };
  const {
    kind,
    scale: [best, worst],
  } = loss;
  if (kind === "zero_one" && places.length <= MOST_KEYED) return verdicts(places);
  return {
    kind: "scale",
    lines: places.map((at) => `Loss of answer ${at + 1}`),
    low: best,
    high: worst,
    step: kind === "zero_one" ? 1 : (worst - best) / STEPS,
    takes: "shown",
    asked: false,
  };
}

/**
 * A button for every set of answers that are right, the smaller sets first.
 *
 * @param {number[]} places
 * @returns {Buttons}
 */
function verdicts(places) {
  const sets = Array.from({ length: 2 ** places.length }, (_, set) =>
    places.filter((at) => (set >> at) % 2 === 1),
  ).sort((one, other) => one.length - other.length);
  const options = sets.map((right, at) => {
    const said = { losses: places.map((one) => (right.includes(one) ? 0 : 1)) };
    return { keys: [String(at)], name: nameOf(right, places.length), said };
  });
  return { kind: "buttons", options, asked: false };
}

/**
 * @param {number[]} right
 * @param {number} answers
 */
function nameOf(right, answers) {
  if (right.length === 0) return answers === 1 ? "Wrong" : "None is correct";
  if (right.length === answers && answers > 1)
    return answers === 2 ? "Both are correct" : "All are correct";
  const numbers = right.map((at) => at + 1).join(" and ");
  return right.length === 1 ? `Only ${numbers} is correct` : `${numbers} are correct`;
}
