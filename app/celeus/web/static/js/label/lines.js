/* What is said of an item on several lines, each by two buttons or by a place on a scale. */

import { byId, cloned, only } from "../dom.js";
import { onScale, saidOf, valueWords } from "./scales.js";

/** The value of a row is undefined until it is chosen, and null where nobody can tell it. */
/** @typedef {{ line: FormLine, place: HTMLElement, value: number | null | undefined }} Row */

/** @type {Row[]} */
let rows = [];
/** @type {Lines["takes"]} */
let takes = "loss";
/** What was typed of a value. */
let typed = "";

/**
 * The lines with their button, and what can be said beside them.
 *
 * @param {Lines} form
 * @param {(said: Judgement) => void} judge
 * @param {HTMLElement[]} others
 */
export function linesOf(form, judge, others) {
  takes = form.takes;
  rows = form.lines.map(rowOf);
  const lines = only(cloned("lines"), "form");
  lines.prepend(...rows.map((row) => row.place));
  only(lines, ".lines-give").append(...others);
  lines.addEventListener("focusin", begun);
  lines.addEventListener("submit", (event) => {
    event.preventDefault();
    const values = rows.flatMap(({ value }) => (value === undefined ? [] : [value]));
    if (values.length === rows.length) judge(saidOf(form, values));
  });
  return lines;
}

/** Begin with nothing chosen. */
export function beginLines() {
  const within = focused() !== undefined;
  for (const row of rows) row.value = undefined;
  typed = "";
  if (within) focusOn(rows[0]);
  show();
}

/**
 * @param {FormLine} line
 * @param {number} at
 * @returns {Row}
 */
function rowOf(line, at) {
  const { name, choices } = line;
  const id = at === 0 ? "line" : `line-${at}`;
  const [low, high] = line.ends;
  const made = cloned(choices ? "line-choices" : "line-scaled", { name, low, high });
  const place = only(made, ".line");
  place.setAttribute("aria-labelledby", `${id}-name`);
  only(place, ".line-name").id = `${id}-name`;
  /** @type {Row} */
  const row = { line, place, value: undefined };
  if (choices) place.append(...choices.map((word, value) => choice(row, value, word)));
  else beginScale(row, id);
  if (takes === "metrics") place.append(choice(row, null, "Cannot tell"));
  return row;
}

/**
 * @param {Row} row
 * @param {number | null} value
 * @param {string} name
 */
function choice(row, value, name) {
  const key = value === null ? "u" : String(value);
  const button = only(cloned("answer", { key: key.toUpperCase(), name }), "button");
  button.classList.toggle("cannot", value === null);
  button.setAttribute("aria-keyshortcuts", key);
  button.dataset.value = String(value);
  button.addEventListener("click", () => choose(row, value));
  return button;
}

/**
 * @param {Row} row
 * @param {string} id
 */
function beginScale(row, id) {
  const { line, place } = row;
  const range = only(place, "input", HTMLInputElement);
  Object.assign(range, { id, min: line.low, max: line.high, step: line.step });
  only(place, "output").setAttribute("for", id);
  for (const [at, end] of place.querySelectorAll(".scale-end").entries())
    end.id = `${id}-end-${at}`;
  range.setAttribute("aria-labelledby", `${id}-name`);
  range.setAttribute("aria-describedby", `${id}-end-0 ${id}-end-1`);
  // A press where the hidden thumb stands changes nothing, and chooses that place all the same
  for (const event of ["input", "pointerup"])
    range.addEventListener(event, () => choose(row, onScale(line, range.valueAsNumber)));
}

/**
 * @param {Row} row
 * @param {number | null | undefined} value
 */
function choose(row, value) {
  row.value = value;
  typed = "";
  show();
}

/** Show what is chosen, of which row keys are, and whether everything is said. */
function show() {
  for (const { line, place, value } of rows) {
    for (const button of place.querySelectorAll("button"))
      button.setAttribute("aria-pressed", String(button.dataset.value === String(value)));
    if (line.choices) continue;
    const range = only(place, "input", HTMLInputElement);
    const words = value === undefined ? "not chosen" : valueWords(line, takes, value);
    range.value = String(value ?? (line.low + line.high) / 2);
    range.classList.toggle("chosen", typeof value === "number");
    range.setAttribute("aria-valuetext", words);
    const output = only(place, "output");
    output.textContent = words;
    output.classList.toggle("chosen", value !== undefined);
  }
  byId("give", HTMLButtonElement).disabled = open() !== undefined;
  mark();
}

function mark() {
  for (const row of rows)
    row.place.classList.toggle("current", rows.length > 1 && row === current());
}

/** The first row of which nothing is said yet. */
function open() {
  return rows.find((row) => row.value === undefined);
}

function focused() {
  return rows.find((row) => row.place.contains(document.activeElement));
}

/** Another row has the focus: what is typed there is a number of its own. */
function begun() {
  typed = "";
  mark();
}

/** The row that keys speak of. */
function current() {
  return focused() ?? open() ?? rows[rows.length - 1];
}

/** The same, which keeps what further keys say. */
function keyed() {
  const row = current();
  if (rows.length > 1 && row !== focused()) focusOn(row);
  return row;
}

/** @param {Row} row */
function focusOn({ place, line }) {
  const control = line.choices ? place : only(place, "input", HTMLInputElement);
  control.focus({ preventScroll: true });
  place.scrollIntoView({ block: "nearest" });
}

function goOn() {
  const next = open();
  if (next !== undefined) focusOn(next);
  return next;
}

/**
 * Take a key pressed; returns whether it says something here.
 *
 * @param {string} key
 * @param {boolean} onButton whether it presses a button by itself
 */
export function keyLines(key, onButton) {
  const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[key];
  const upright = key === "ArrowDown" || key === "ArrowUp";
  if (upright && rows.length > 1) other(key === "ArrowDown" ? 1 : -1);
  else if (key === "ArrowDown" && takes === "preference") choose(keyed(), 0);
  else if (step !== undefined) move(step);
  else if (key === "Home") choose(keyed(), current().line.low);
  else if (key === "End") choose(keyed(), current().line.high);
  else if (takes !== "preference" && /^(?:[-.,0-9]|Backspace)$/.test(key))
    type(key === "," ? "." : key);
  else if (key === "Enter" && !onButton) give();
  else return false;
  return true;
}

/** Nobody can tell what keys speak of; go on to the next. */
export function cannotTell() {
  choose(keyed(), null);
  goOn();
}

/** @param {number} step */
function other(step) {
  const at = rows.indexOf(current()) + step;
  focusOn(/** @type {Row} */ (rows.at(at % rows.length)));
}

/** @param {number} steps */
function move(steps) {
  const row = keyed();
  const { line, value } = row;
  choose(row, onScale(line, (value ?? (line.low + line.high) / 2) + steps * line.step));
}

/**
 * A key of a number: the value so far, or the begin of one; a line of two values goes on.
 *
 * @param {string} key
 */
function type(key) {
  const row = keyed();
  const { low, high, choices } = row.line;
  const fits = (/** @type {string} */ text) => low <= Number(text) && Number(text) <= high;
  if (choices) {
    if (key !== "0" && key !== "1") return;
    choose(row, Number(key));
    goOn();
    return;
  }
  const text = key === "Backspace" ? "" : ([typed + key, key].find(fits) ?? key);
  // Further digits lead only away from 0
  if (Math.abs(Number(text)) > Math.max(Math.abs(low), Math.abs(high))) return;
  choose(row, text !== "" && fits(text) ? Number(text) + 0 : undefined);
  typed = text;
}

/** Submit, or go on to what is not said yet. */
function give() {
  if (goOn() === undefined) byId("give").click();
}
