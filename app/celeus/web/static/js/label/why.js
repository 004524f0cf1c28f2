/* Why an item cannot be judged: a ready reason by one key, or one's own words. */

import { byId } from "../dom.js";

/** @type {(reason: string) => void} */
let answer = () => {};

/**
 * Ask for the reason; `give` is called with it, unless the person goes back.
 *
 * @param {(reason: string) => void} give
 */
export function askWhy(give) {
  answer = give;
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
  if (event.target === byId("reason")) {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      given(byId("reason", HTMLTextAreaElement).value);
    }
    return;
  }
  const button = ready()[Number(event.key) - 1];
  if (button === undefined || event.repeat) return;
  event.preventDefault();
  given(button.dataset.reason ?? "");
}

/** @returns {NodeListOf<HTMLButtonElement>} */
function ready() {
  return document.querySelectorAll("#why [data-reason]");
}

/** @param {string} reason */
function given(reason) {
  const told = reason.trim();
  if (told === "") {
    byId("reason").focus();
    return;
  }
  byId("why", HTMLDialogElement).close();
  answer(told);
}

for (const button of ready())
  button.addEventListener("click", () => given(button.dataset.reason ?? ""));
byId("why-back").addEventListener("click", () => byId("why", HTMLDialogElement).close());
byId("why-form").addEventListener("submit", (event) => {
  event.preventDefault();
  given(byId("reason", HTMLTextAreaElement).value);
});
