/* Who is judging: labels of the last minute and hour, the draws each holds, and who keeps whom. */

import { el } from "../dom.js";
import { ago, count, counted } from "../format.js";

/* What the labelling page adds to a person's name, a window each */
const WINDOW = / [0-9a-f]{12}$/;

/**
 * @typedef {object} Person
 * @property {string} name
 * @property {number} minute
 * @property {number} hour
 * @property {string | null} last
 * @property {WorkerRow["draws"]} draws
 */

/**
 * Who works from several windows is one person.
 *
 * @param {WorkerPage} page
 * @returns {Person[]}
 */
function persons(page) {
  /** @type {Map<string, Person>} */
  const found = new Map();
  for (const one of page.data) {
    const name = one.worker.replace(WINDOW, "");
    const person = found.get(name) ?? { name, minute: 0, hour: 0, last: null, draws: [] };
    person.minute += one.labels_minute;
    person.hour += one.labels_hour;
    person.draws.push(...one.draws);
    if (one.last_label_at !== null && one.last_label_at > (person.last ?? ""))
      person.last = one.last_label_at;
    found.set(name, person);
  }
  return [...found.values()];
}

/**
 * What the labels that are not in the interval yet wait for; null where none waits.
 *
 * @param {WorkerPage} page
 * @param {AnySession} session
 */
export function held(page, { state, rounds }) {
  const labels = rounds.judged - rounds.in_interval;
  const first = rounds.in_interval + 1;
  const person = persons(page).find((one) => one.draws.some((draw) => draw.round === first));
  if (state !== "active" || labels <= 0 || person === undefined) return null;
  const now = Date.parse(page.at);
  const live = person.draws.filter((draw) => Date.parse(draw.expires_at) > now);
  const holds = live.some((draw) => draw.round === first);
  const verb = labels === 1 ? "waits" : "wait";
  return {
    first,
    words: `${counted(labels, "label")} ${verb} for an item drawn earlier, which ${holds ? `${person.name} holds` : "is free for whoever asks next"}.`,
    rounds: holds ? live.map((draw) => draw.round) : [],
  };
}

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
          persons(page).map((person) => row(person, now)),
        ),
      ),
    ),
    page.next === null ? null : el("p", { class: "quiet-text" }, "Not all workers are shown."),
  ];
}

/**
 * @param {Person} person
 * @param {number} now
 */
function row(person, now) {
  return el(
    "tr",
    {},
    el(
      "th",
      { scope: "row" },
      el("bdi", {}, person.name),
      person.last === null
        ? null
        : el("span", { class: "quiet-text" }, ago(Date.parse(person.last), now)),
    ),
    el("td", { class: "number" }, count(person.minute)),
    el("td", { class: "number" }, count(person.hour)),
    el("td", {}, out(person.draws, now)),
  );
}

/**
 * @param {WorkerRow["draws"]} draws
 * @param {number} now
 */
function out(draws, now) {
  if (draws.length === 0) return "–";
  const ends = draws.map((draw) => Date.parse(draw.expires_at));
  const free = ends.filter((end) => end <= now).length;
  if (free === draws.length) return `${count(free)} given back`;
  const next = Math.min(...ends.filter((end) => end > now));
  const also = free > 0 ? `, ${count(free)} given back` : "";
  return `${count(draws.length - free)}, for ${inTime(next - now)}${also}`;
}

/** @param {number} milliseconds */
function inTime(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 90 ? `${seconds}\u202fs` : `${Math.round(seconds / 60)}\u202fmin`;
}

/**
 * @param {string} word
 * @param {boolean} isNumber
 */
function head(word, isNumber = true) {
  return el("th", { scope: "col", class: isNumber ? "number" : null }, word);
}
