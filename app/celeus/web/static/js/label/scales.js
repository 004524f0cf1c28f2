/* A scale as its score prints it: its values, the words of two of them, and which end is better. */

const STEPS = 100;
export const BOTH_ARE_BAD = "Both are bad";

/**
 * A line on which a loss is given, by the values of its score where that is known.
 *
 * @param {string | number} key what a judgement calls it
 * @param {string} name
 * @param {NonNullable<Task["loss"]>} loss
 * @param {Task["score"]} score
 * @param {[best: string, worst: string]} words those of a loss of two values
 * @returns {FormLine}
 */
export function lineOf(key, name, { kind, scale: [low, high], ends }, score, [best, worst]) {
  const turned = score?.better === "higher";
  const two = kind === "zero_one";
  return {
    ...{ key, name, low, high, turned },
    step: two ? 1 : (high - low) / STEPS,
    ends: [`${shortest(low)} ${ends[0]}`, `${shortest(high)} ${ends[1]}`],
    choices: two ? (turned ? [worst, best] : [best, worst]) : null,
  };
}

/**
 * The lines of several metrics.
 *
 * @param {NonNullable<Task["metrics"]>} metrics
 * @returns {Lines}
 */
export function metricsFor(metrics) {
  const lines = metrics.map((metric) => {
    const { name, score, words } = metric;
    return lineOf(name, name, metric, score, words);
  });
  return { kind: "lines", lines, takes: "metrics", asked: false };
}

/**
 * The judgement of a value for every line, null where nobody can tell it.
 *
 * @param {Lines} form
 * @param {(number | null)[]} values
 * @returns {Judgement}
 */
export function saidOf({ lines, takes }, values) {
  if (takes === "preference") return preferenceOf(values[0] ?? 0);
  const losses = lines.map((line, at) => turn(line, values[at]));
  if (takes === "loss") return { loss: losses[0] ?? undefined };
  if (takes === "shown") return { losses: /** @type {number[]} */ (losses) };
  return { losses: Object.fromEntries(lines.map(({ key }, at) => [key, losses[at]])) };
}

/**
 * A judgement in the words of its lines.
 *
 * @param {Lines} form
 * @param {Judgement} said
 */
export function linesWords({ lines, takes }, said) {
  if (takes === "preference") return preferenceWords(said, lines[0].high);
  const losses = /** @type {Record<string, number | null>} */ (said.losses ?? {});
  const parts = lines.map((line) => {
    const words = valueWords(
      line,
      takes,
      turn(line, takes === "loss" ? (said.loss ?? null) : losses[line.key]),
    );
    return words.includes(line.name) ? words : `${line.name}: ${words}`;
  });
  return parts.join(", ");
}

/**
 * A value of a line, as it is printed.
 *
 * @param {FormLine} line
 * @param {Lines["takes"]} takes
 * @param {number | null} value
 */
export function valueWords({ choices, high }, takes, value) {
  if (value === null) return "cannot tell";
  if (takes === "preference") return preferenceWords(preferenceOf(value), high);
  return choices?.[value] ?? shortest(value);
}

/**
 * The loss of a score, or the score of a loss.
 *
 * @param {FormLine} line
 * @param {number | null} value
 */
function turn({ turned, low, high }, value) {
  return value === null || !turned ? value : onScale({ low, high }, low + high - value);
}

/**
 * A value within the ends exactly, and without the digits that come from adding steps.
 *
 * @param {Pick<FormLine, "low" | "high">} scale
 * @param {number} value
 */
export function onScale({ low, high }, value) {
  return Math.min(high, Math.max(low, Number(value.toPrecision(12))));
}

/** @param {number} value */
function shortest(value) {
  return String(Number(value.toPrecision(6)));
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
  if (preference === "both_bad") return BOTH_ARE_BAD;
  const side = preference === "left" ? "Left" : "Right";
  if (grades === 1) return `${side} is better`;
  if (grades === 2) return `${side} is ${grade === 1 ? "" : "much "}better`;
  return `${side} is better by ${grade}`;
}
