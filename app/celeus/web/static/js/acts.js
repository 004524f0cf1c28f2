/* Buttons that say themselves what they ask of the service.

   `data-call` is the request and `data-body` its JSON; `data-said` is announced after it. */

import { api } from "./api.js";
import { announce, byId } from "./dom.js";
import { ready } from "./live.js";

/**
 * @typedef {object} Page
 * @property {(problem: unknown) => void} fail tells a problem; null: there is none any more
 * @property {() => Promise<void>} look shows the page as it is after the change
 */

/**
 * Do what the buttons in the main part of the page say.
 *
 * @param {Page} page
 */
export function listen(page) {
  byId("main").addEventListener("click", ({ target }) => {
    const pressed = target instanceof Element ? target.closest("button[data-call]") : null;
    if (pressed instanceof HTMLButtonElement) act(pressed, page);
  });
  ready();
}

/**
 * @param {HTMLButtonElement} pressed
 * @param {Page} page
 */
async function act(pressed, { fail, look }) {
  // The page as it is then has the button for what can be done next
  const { call = "", body, said = "" } = pressed.dataset;
  const [method = "", path = ""] = call.split(" ");
  const options = method === "PATCH" ? { retry: 2 } : {};
  pressed.disabled = true;
  try {
    await api(method, path, body === undefined ? undefined : JSON.parse(body), options);
    pressed.disabled = false;
    fail(null);
    await look();
    announce(said);
  } catch (problem) {
    pressed.disabled = false;
    fail(problem);
  }
  // A button that cannot be pressed has lost it
  if (document.activeElement === document.body)
    (pressed.isConnected ? pressed : byId("main")).focus();
}
