/* How the file of a pool was read, in words. */

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
