/* What a judge says in words: why an item cannot be judged, and what is added to a judgement. */

import { byId } from "../dom.js";

/** @type {(reason: string) => void} */
let answer = () => {};
/** @type {() => void} */
let passOn = () => {};

/**
 * Ask for the reason; `give` is called with it, unless the person goes back. Where somebody else
 * may be asked, `pass` leaves it to them.
 *
 * @param {(reason: string) => void} give
 * @param {(() => void) | null} pass
 */
export function askWhy(give, pass) {
  answer = give;
  passOn = pass ?? (() => {});
  byId("why-pass").hidden = pass === null;
  byId("reason", HTMLTextAreaElement).value = "";
  byId("why", HTMLDialogElement).showModal();
  ready()[0].focus();
}

/**
 * A key pressed while the reason is asked for.
 *
 * @param {KeyboardEvent} event
 */
export function whyKey(event) {
  const key = event.key.toLowerCase();
  let button = key === "p" ? byId("why-pass") : ready()[Number(key) - 1];
  if (event.target === byId("reason")) {
    if (key !== "enter" || event.shiftKey) return;
    button = byId("why-give");
  }
  if (button === undefined || button.hidden || event.repeat) return;
  event.preventDefault();
  button.click();
}

/** @returns {NodeListOf<HTMLElement>} */
function ready() {
  return document.querySelectorAll("#why .why-ready button");
}

/* The comment */

function comment() {
  return byId("comment", HTMLTextAreaElement);
}

/** Open the field. */
export function openComment() {
  byId("comment-field").hidden = false;
  comment().focus();
}

/** What stands in the field, to be added to the judgement. */
export function commentSaid() {
  return comment().value.trim();
}

/**
 * Show what was said of a round before, once: what is typed after that stays.
 *
 * @param {number} round
 * @param {boolean} again whether the round is judged again
 * @param {string} said
 */
export function showComment(round, again, said) {
  const place = `${round} ${again}`;
  if (comment().dataset.place === place) return;
  comment().dataset.place = place;
  comment().value = said;
  byId("comment-field").hidden = said === "";
}

/**
 * A key pressed in the field: Enter and Escape go back to the item, and what was typed stays.
 *
 * @param {KeyboardEvent} event
 */
export function commentKey(event) {
  if (event.key !== "Escape" && (event.key !== "Enter" || event.shiftKey || event.isComposing))
    return;
  event.preventDefault();
  byId("comment-field").hidden = commentSaid() === "";
  comment().blur();
  document.getElementById("class")?.focus({ preventScroll: true });
}

byId("why-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = byId("reason", HTMLTextAreaElement);
  const { id, value } = /** @type {HTMLButtonElement} */ (event.submitter);
  const reason = id === "why-give" ? field.value.trim() : value;
  if (id === "why-give" && reason === "") {
    field.focus();
    return;
  }
  byId("why", HTMLDialogElement).close();
  if (id === "why-pass") passOn();
  else if (reason !== "") answer(reason);
});
