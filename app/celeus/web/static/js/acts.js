/* Buttons and choices that say themselves what they ask of the service.

   `data-call` is the request and `data-body` its JSON; `data-sure` a question before it, with
   `data-words` and the button `data-yes`; `data-said` is announced after it, and `data-then` the id
   of what has the focus then if the button is gone. */

import { api } from "./api.js";
import { announce, byId, el } from "./dom.js";
import { ready, renew } from "./live.js";

/**
 * @typedef {object} Page
 * @property {(problem: unknown) => void} fail tells a problem; null: there is none any more
 * @property {(pressed: HTMLElement, answer: any) => void} [answered]
 * @property {() => Promise<void>} [look] shows the page as it is after the change
 */

/**
 * Do what the buttons and choices in the main part of the page say.
 *
 * @param {Page} page
 */
export function listen(page) {
  byId("main").addEventListener("click", ({ target }) => {
    const pressed = target instanceof Element ? target.closest("button[data-call]") : null;
    if (pressed instanceof HTMLButtonElement) act(pressed, pressed.dataset, page);
  });
  byId("main").addEventListener("change", async ({ target }) => {
    if (!(target instanceof HTMLSelectElement) || !target.dataset.call) return;
    await act(target, { ...target.dataset, ...target.selectedOptions[0]?.dataset }, page);
    for (const option of target.options) option.selected = option.defaultSelected;
  });
  ready();
}

/**
 * @param {HTMLButtonElement | HTMLSelectElement} pressed
 * @param {DOMStringMap} told
 * @param {Page} page
 */
async function act(pressed, told, { fail, answered, look = renew }) {
  if (told.sure && !(await sure(told.sure, told.words ?? "", told.yes ?? "Yes"))) return;
  pressed.disabled = true;
  try {
    const answer = await ask(told);
    pressed.disabled = false;
    fail(null);
    await look();
    announce(told.said ?? "");
    answered?.(pressed, answer);
  } catch (problem) {
    pressed.disabled = false;
    fail(problem);
  }
  // A button that cannot be pressed has lost it
  if (document.activeElement !== document.body) return;
  const next = pressed.isConnected ? pressed : document.getElementById(told.then ?? "main");
  next?.focus();
}

/** @param {DOMStringMap} told */
function ask({ call = "", body }) {
  const [method = "", path = ""] = call.split(" ");
  const options = method === "PATCH" ? { retry: 2 } : {};
  return api(method, path, body === undefined ? undefined : JSON.parse(body), options);
}

/**
 * Whether somebody means it.
 *
 * @param {string} title
 * @param {string} words
 * @param {string} yes
 * @returns {Promise<boolean>}
 */
function sure(title, words, yes) {
  const dialog = el(
    "dialog",
    { id: "sure", "aria-labelledby": "sure-title" },
    el(
      "form",
      { method: "dialog", class: "stack" },
      el("h2", { id: "sure-title" }, title),
      el("p", {}, words),
      el(
        "div",
        { class: "row" },
        el("button", { class: "button danger", value: "yes" }, yes),
        el("button", { class: "button", value: "no", autofocus: true }, "Cancel"),
      ),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}
