/* What can be said of an item: buttons with their keys, a number, or a point on a scale. */

import { lineOf, linesWords, metricsFor } from "./scales.js";
import { shownFor } from "./shown.js";
import { sidesFor } from "./sides.js";

const DIGITS = [..."1234567890"];
/** As they lie on the keyboard, without those that say something else. */
const LETTERS = [..."qwertyoasdfghjklxvbnm"];

/**
 * The form of a judgement: `{kind: "buttons", options: [{keys, name, said}]}`,
 * `{kind: "field", options}` for more classes than there are keys (where there are no
 * options, the label is the number itself), or `{kind: "lines", lines}`.
 *
 * @param {Task} task
 * @param {Draw} draw
 * @returns {Form}
 */
export function answersFor(task, { item: { payload }, answers }) {
  const { loss } = task;
  const several = severalFor(task, answers);
  if (several !== null) return several;
  // Of several metrics alone there is no single loss
  if (loss === null) return shownFor(task, null);
  const told = /** @type {Payload} */ (
    typeof payload === "object" && payload !== null ? payload : {}
  );
  const named = namesOf(told, task);
  if (task.takes_labels && named !== null) return labels(named);
  const { comparison, best: sought } = task;
  const none = comparison || sought || told.answer === undefined || told.answer === null;
  if (task.takes_labels && none) {
    if (task.classes === null || task.classes > DIGITS.length)
      return { kind: "field", options: null, classes: task.classes, asked: false };
    return labels(
      Array.from({ length: task.classes }, (_, at) => String(at)),
      false,
    );
  }
  if (comparison) return sidesFor(comparison, task);
  return ofLoss(loss, task);
}

/**
 * The form of a judgement that is a named level: by the digit of its grade, or by letters where
 * grades are no digits.
 *
 * @param {NonNullable<Task["levels"]>} levels
 * @param {Task["better"]} better
 * @param {[best: number, worst: number]} scale
 * @returns {Form}
 */
function levelsFor(levels, better, [best, worst]) {
  const keys = keysOf(levels.map(({ grade }) => String(grade)));
  const options = levels.map((level, at) => ({
    keys: [keys[at]],
    name: levelWords(level),
    said: { loss: level.loss },
    ...(level.loss === best ? { end: /** @type {const} */ ("best") } : {}),
    ...(level.loss === worst ? { end: /** @type {const} */ ("worst") } : {}),
    ...(level.help === null ? {} : { help: helpOf(at) }),
  }));
  return { kind: "buttons", options, asked: false, better };
}

/**
 * The key of every name: its own digit, or else the keys in their order, but no digit where a name
 * begins with one, as it would mean another; fewer where there are not enough.
 *
 * @param {string[]} names
 */
function keysOf(names) {
  if (names.every((name) => /^[0-9]$/.test(name)) && new Set(names).size === names.length)
    return names;
  return [...(names.some((name) => /^[-.0-9]/.test(name)) ? [] : DIGITS), ...LETTERS];
}

/**
 * A level as it is called: its grade and its name.
 *
 * @param {NonNullable<Task["levels"]>[number]} level
 */
export function levelWords({ grade, name }) {
  return `${grade} ${name}`;
}

/**
 * The id of the words that say when a level is the right one.
 *
 * @param {number} place
 */
export function helpOf(place) {
  return `level-${place}`;
}

/**
 * The form of a judgement that is a loss, by its levels where these have names.
 *
 * @param {NonNullable<Task["loss"]>} loss
 * @param {Task} task
 * @returns {Form}
 */
function ofLoss(loss, { levels, better, score, words }) {
  if (levels) return levelsFor(levels, better, loss.scale);
  if (loss.kind === "zero_one") {
    return {
      kind: "buttons",
      options: [
        { keys: ["1"], name: words[0], said: { loss: 0 }, end: "best" },
        { keys: ["2"], name: words[1], said: { loss: 1 }, end: "worst" },
      ],
      asked: false,
    };
  }
  const line = lineOf("loss", score?.name ?? "Loss", loss, score, words);
  return { kind: "lines", lines: [line], takes: "loss", asked: false };
}

/**
 * Several losses: one of every metric, or of several systems one of every answer, but where a
 * label gives all of them. Null where a judgement is one loss.
 *
 * @param {Task} task
 * @param {Draw["answers"]} answers
 */
function severalFor(task, answers) {
  if (task.metrics) return metricsFor(task.metrics);
  return task.best && !task.takes_labels ? shownFor(task, answers) : null;
}

/**
 * A judgement in words.
 *
 * @param {Judgement} said
 * @param {Form} form
 * @returns {string}
 */
export function wordsOf(said, form) {
  if (said.unjudgeable !== undefined) return "cannot be judged";
  const option = form.options?.find((one) => same(one.said, said));
  if (option) return option.name;
  if (said.label !== undefined) return `class ${said.label}`;
  if (form.kind === "lines") return linesWords(form, said);
  return `loss ${said.loss}`;
}

/**
 * Whether two judgements say the same, whatever is added to them.
 *
 * @param {Judgement} one
 * @param {Judgement} other
 */
export function same(one, other) {
  return sayingOf(one) === sayingOf(other);
}

/** @param {Judgement} said */
function sayingOf({ loss, label, unjudgeable, preference, grade, losses }) {
  const both = losses && !Array.isArray(losses) ? Object.entries(losses) : losses;
  return JSON.stringify([loss, label, unjudgeable, preference, grade, both]);
}

/**
 * @param {Payload} told
 * @param {Task} task
 */
function namesOf(told, task) {
  if (Array.isArray(told.choices) && told.choices.length > 0) {
    return told.choices.map((one) =>
      typeof one === "object" && one !== null
        ? String(one.text ?? JSON.stringify(one))
        : String(one),
    );
  }
  if (!Array.isArray(told.pair)) return null;
  return task.classes === 3 ? ["Left", "Right", "Tie"] : ["Left", "Right"];
}

/**
 * @param {string[]} names
 * @param {boolean} asked
 * @returns {Form}
 */
function labels(names, asked = true) {
  const named = names.map((name, label) => ({ name, said: { label } }));
  const keys = keysOf(names);
  if (names.length > keys.length) return { kind: "field", options: named, classes: null, asked };
  const options = named.map((option, at) => ({ ...option, keys: [keys[at]] }));
  return { kind: "buttons", options, asked };
}
