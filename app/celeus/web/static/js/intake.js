/* How the file of a pool was read, in words. */

import { el } from "./dom.js";
import { counted } from "./format.js";

/**
 * What each role is called, in the order of the choice.
 *
 * @type {Record<string, string>}
 */
export const ROLES = {
  id: "Id",
  question: "Question",
  answer: "Answer",
  reference: "Reference",
  messages: "Chat",
  image: "Picture",
  text: "Text beside it",
  choices: "Choices",
  instructions: "Instructions",
  answer_a: "Answer of A",
  answer_b: "Answer of B",
  surrogate: "Guess of the loss",
  score: "Guess of the score",
  prediction: "Predicted class",
  weight: "Weight",
  group: "Group",
  payload: "Shown, folded",
  known: "Known verdict",
  hidden: "Hidden",
};
const FORMATS = { csv: "CSV", json: "JSON", jsonl: "JSON Lines", parquet: "Parquet" };

/**
 * What the file is, how it was read, and how many columns it has, in words.
 *
 * @param {string | null | undefined} format
 * @param {string[]} readAs
 * @param {number} columns
 */
export function readWords(format, readAs, columns) {
  const read = [FORMATS[/** @type {"csv"} */ (format)] ?? "", ...readAs].filter(Boolean);
  const words = [read.join(", "), columns > 0 && counted(columns, "column")]
    .filter(Boolean)
    .join("; ");
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/**
 * What was decided when the file of a pool was read, behind a line to open; nothing where a pool
 * was made of none.
 *
 * @param {Pool["intake"]} intake
 */
export function intakeOf(intake) {
  if (intake === null) return null;
  const { format, read_as: readAs, columns, answers, rows, items, skipped } = intake;
  const bad = skipped > 0 ? `, ${counted(skipped, "bad row")} left out` : "";
  const said = [readWords(format, readAs, columns.length), counted(rows, "row")];
  return el(
    "details",
    { class: "intake" },
    el("summary", {}, "How the file was read"),
    el("p", {}, `${said.filter(Boolean).join("; ")}, ${counted(items, "item")}${bad}.`),
    el(
      "table",
      { class: "table" },
      el(
        "tbody",
        {},
        Object.entries(answers).map(([name, answer]) =>
          lineOf(["Answered ", el("bdi", {}, name)], el("bdi", {}, answerWords(answer))),
        ),
        columns.map(({ name, role, why }) =>
          lineOf(el("bdi", {}, name), [ROLES[role] ?? role, el("small", {}, why)]),
        ),
      ),
    ),
  );
}

/**
 * @param {Child} name
 * @param {Child} value
 */
function lineOf(name, value) {
  return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, value));
}

/** @param {unknown} answer */
function answerWords(answer) {
  if (typeof answer === "string") return answer;
  return Array.isArray(answer) ? answer.join(", ") : JSON.stringify(answer);
}
