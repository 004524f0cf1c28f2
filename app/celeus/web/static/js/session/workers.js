/* Who is judging: labels of the last minute and hour, and the draws each holds. */

import { el } from "../dom.js";
import { ago, count, counted } from "../format.js";

/**
 * The workers as a table with a sentence above it.
 *
 * @param {WorkerPage} page
 */
export function workers(page) {
  const now = Date.parse(page.at);
  const sentence = `${counted(page.labels_minute, "label")} in the last minute, ${count(page.labels_hour)} in the last hour; ${counted(page.draws, "draw")} out.`;
  if (page.data.length === 0)
    return el(
      "p",
      { class: "quiet-text" },
      "Nobody has judged within the last hour, and no draw is out.",
    );
  return [
    el("p", { class: "quiet-text" }, sentence),
    el(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Workers" },
      el(
        "table",
        { class: "table workers" },
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            head("Worker", false),
            head("Minute"),
            head("Hour"),
            head("Draws out", false),
          ),
        ),
        el(
          "tbody",
          {},
          page.data.map((worker) => row(worker, now)),
        ),
      ),
    ),
    page.next === null ? null : el("p", { class: "quiet-text" }, "Not all workers are shown."),
  ];
}

/**
 * @param {WorkerRow} worker
 * @param {number} now
 */
function row(worker, now) {
  return el(
    "tr",
    {},
    el(
      "th",
      { scope: "row" },
      el("bdi", {}, worker.worker),
      worker.last_label_at === null
        ? null
        : el("span", { class: "quiet-text" }, ago(Date.parse(worker.last_label_at), now)),
    ),
    el("td", { class: "number" }, count(worker.labels_minute)),
    el("td", { class: "number" }, count(worker.labels_hour)),
    el("td", {}, held(worker.draws, now)),
  );
}

/**
 * @param {WorkerRow["draws"]} draws
 * @param {number} now
 */
function held(draws, now) {
  if (draws.length === 0) return "–";
  const ends = draws.map((draw) => Date.parse(draw.expires_at));
  const overdue = ends.filter((end) => end <= now).length;
  const next = Math.min(...ends);
  if (overdue > 0) return `${count(draws.length)}, ${count(overdue)} overdue`;
  return `${count(draws.length)}, until ${inTime(next - now)}`;
}

/** @param {number} milliseconds */
function inTime(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 90 ? `in ${seconds}\u202fs` : `in ${Math.round(seconds / 60)}\u202fmin`;
}

/**
 * @param {string} word
 * @param {boolean} isNumber
 */
function head(word, isNumber = true) {
  return el("th", { scope: "col", class: isNumber ? "number" : null }, word);
}
