/* What can be said of an item: buttons with their keys, a number, or a point on a scale. */

import { metricsFor, vectorWords } from "./metrics.js";
import { shownFor } from "./shown.js";
import { preferenceWords, sidesFor } from "./sides.js";

const MOST_BUTTONS = 10;
const STEPS = 100;

/**
 * The form of a judgement: `{kind: "buttons", options: [{keys, name, said}]}`,
 * `{kind: "field", names}` for more classes than there are keys (the label is the place of the
 * name, or the number itself where there are no names), or `{kind: "scale", lines, low, high}`.
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
    if (task.classes === null) return { kind: "field", names: null, classes: null, asked: false };
    if (task.classes > MOST_BUTTONS)
      return { kind: "field", names: null, classes: task.classes, asked: false };
    return labels(
      Array.from({ length: task.classes }, (_, at) => String(at)),
      false,
    );
  }
  if (comparison) return sidesFor(comparison);
  return ofLoss(loss);
}

/**
 * The form of a judgement that is a loss.
 *
 * @param {NonNullable<Task["loss"]>} loss
 * @returns {Form}
 */
function ofLoss(loss) {
  const [best, worst] = loss.scale;
  if (loss.kind === "zero_one") {
    return buttons(
      [
        ["Correct", { loss: 0 }],
        ["Wrong", { loss: 1 }],
      ],
      false,
    );
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
  const option = form.kind === "buttons" && form.options.find((one) => same(one.said, said));
  if (option) return option.name;
  if (said.label !== undefined) return namesIn(form)?.[said.label] ?? `class ${said.label}`;
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

/** @param {Form} form */
function namesIn(form) {
  return form.kind === "field" ? form.names : null;
}

/**
 * Whether two judgements say the same.
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
  if (names.length > MOST_BUTTONS) return { kind: "field", names, classes: null, asked };
  return buttons(
    names.map((name, label) => [name, { label }]),
    asked,
  );
}

/**
 * @param {[name: string, said: Judgement][]} named
 * @param {boolean} asked
 * @returns {Buttons}
 */
function buttons(named, asked) {
  const digits =
    named.every(([name]) => /^[0-9]$/.test(name)) &&
    new Set(named.map(([name]) => name)).size === named.length;
  const options = named.map(([name, said], at) => ({
    keys: [digits ? name : String((at + 1) % 10)],
    name,
    said,
  }));
  return { kind: "buttons", options, asked };
}
