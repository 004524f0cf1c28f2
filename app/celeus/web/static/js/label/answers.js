/* What can be said of an item: buttons with their keys, a number, or a point on a scale. */

import { metricsFor, vectorWords } from "./metrics.js";
import { shownFor } from "./shown.js";
import { preferenceWords, sidesFor } from "./sides.js";

const MOST_BUTTONS = 10;
const STEPS = 100;
/** Keys of levels whose grades are no digits: a digit would mean a grade that it is not. */
const HOME_ROW = [..."asdfghjkl"];

/**
 * The form of a judgement: `{kind: "buttons", options: [{keys, name, said}]}`,
 * `{kind: "field", options}` for more classes or levels than there are keys (where there are no
 * options, the label is the number itself), or `{kind: "scale", lines, low, high}`.
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
  if (loss === null) return shownFor(null, null);
  const told = /** @type {Payload} */ (
    typeof payload === "object" && payload !== null ? payload : {}
  );
  const named = namesOf(told, task);
  if (task.takes_labels && named !== null) return labels(named);
  const { comparison, best: sought } = task;
  const none = comparison || sought || told.answer === undefined || told.answer === null;
  if (task.takes_labels && none) {
    if (task.classes === null) return { kind: "field", options: null, classes: null, asked: false };
    if (task.classes > MOST_BUTTONS)
      return { kind: "field", options: null, classes: task.classes, asked: false };
    return labels(
      Array.from({ length: task.classes }, (_, at) => String(at)),
      false,
    );
  }
  if (comparison) return sidesFor(comparison);
  return ofLoss(loss, task);
}

/**
 * The form of a judgement that is a named level: by the digit of its grade, or by letters where
 * grades are no digits; a list where there are more than keys.
 *
 * @param {NonNullable<Task["levels"]>} levels
 * @param {Task["better"]} better
 * @param {[best: number, worst: number]} scale
 * @returns {Form}
 */
function levelsFor(levels, better, [best, worst]) {
  const digits = levels.every(({ grade }) => /^[0-9]$/.test(String(grade)));
  if (levels.length > (digits ? MOST_BUTTONS : HOME_ROW.length)) {
    const options = levels.map((one) => ({ name: levelWords(one), said: { loss: one.loss } }));
    return { kind: "field", options, classes: null, asked: false, better };
  }
  const options = levels.map((one, at) => ({
    keys: [digits ? String(one.grade) : HOME_ROW[at]],
    name: levelWords(one),
    said: { loss: one.loss },
    ...(one.loss === best ? { end: /** @type {const} */ ("best") } : {}),
    ...(one.loss === worst ? { end: /** @type {const} */ ("worst") } : {}),
    ...(one.help === null ? {} : { help: helpOf(at) }),
  }));
  return { kind: "buttons", options, asked: false, better };
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
function ofLoss(loss, { levels, better }) {
  if (levels) return levelsFor(levels, better, loss.scale);
  const [best, worst] = loss.scale;
  if (loss.kind === "zero_one") {
    return {
      kind: "buttons",
      options: [
        { keys: ["1"], name: "Correct", said: { loss: 0 }, end: "best" },
        { keys: ["2"], name: "Wrong", said: { loss: 1 }, end: "worst" },
      ],
      asked: false,
    };
  }
  return {
    kind: "scale",
    lines: ["Loss"],
    low: best,
    high: worst,
    step: (worst - best) / STEPS,
    takes: "loss",
    asked: false,
  };
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
  return task.best && !task.takes_labels ? shownFor(task.loss, answers) : null;
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
  const options = form.kind === "scale" ? null : form.options;
  const option = options?.find((one) => same(one.said, said));
  if (option) return option.name;
  if (said.label !== undefined) return `class ${said.label}`;
  if (said.preference !== undefined) return preferenceWords(said, MOST_BUTTONS);
  if (Array.isArray(said.losses)) return `losses ${said.losses.join(", ")}`;
  if (isSided(said.losses))
    return `losses ${said.losses.left} (left) and ${said.losses.right} (right)`;
  if (said.losses !== undefined) return vectorWords(said.losses);
  return `loss ${said.loss}`;
}

/**
 * Whether they are those of two answers; a metric may be called left, and then has no right.
 *
 * @param {Judgement["losses"]} losses
 * @returns {losses is { left: number, right: number }}
 */
function isSided(losses) {
  return losses !== undefined && "left" in losses && "right" in losses;
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
  if (names.length > MOST_BUTTONS) return { kind: "field", options: named, classes: null, asked };
  const digits =
    names.every((name) => /^[0-9]$/.test(name)) && new Set(names).size === names.length;
  const options = named.map((one, at) => ({
    ...one,
    keys: [digits ? one.name : String((at + 1) % 10)],
  }));
  return { kind: "buttons", options, asked };
}
