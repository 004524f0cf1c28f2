/* Why an item cannot be judged: a ready reason by one key, or one's own words. */

import { byId } from "../dom.js";

let answer = null;

/** Ask for the reason; `give` is called with it, unless the person goes back. */
export function askWhy(give) {
  answer = give;
  byId("reason").value = "";
  byId("why").showModal();
  ready()[0].focus();
}

/** A key pressed while the reason is asked for. */
export function whyKey(event) {
  if (event.target === byId("reason")) {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      given(byId("reason").value);
    }
    return;
  }
  const button = ready()[Number(event.key) - 1];
  if (button === undefined || event.repeat) return;
  event.preventDefault();
  given(button.dataset.reason);
}

function ready() {
  return document.querySelectorAll("#why [data-reason]");
}

function given(reason) {
  const told = reason.trim();
  if (told === "") {
    byId("reason").focus();
    return;
  }
  byId("why").close();
  answer(told);
}

for (const button of ready()) button.addEventListener("click", () => given(button.dataset.reason));
byId("why-back").addEventListener("click", () => byId("why").close());
byId("why-form").addEventListener("submit", (event) => {
  event.preventDefault();
  given(byId("reason").value);
});
