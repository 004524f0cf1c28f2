/* A secret that is shown once, to be copied. */

import { announce, el, fill } from "./dom.js";

/**
 * Show a secret in a place that then has the focus, with a button that copies it.
 *
 * @param {HTMLElement} place
 * @param {{ label: string, secret: string, words: string }} told
 */
export function showOnce(place, { label, secret, words }) {
  const field = el("input", {
    readonly: true,
    value: secret,
    "aria-label": label,
    spellcheck: "false",
    on: { focus: () => field.select() },
  });
  const button = el("button", { type: "button", class: "button", on: { click: copy } }, "Copy");

  async function copy() {
    try {
      await navigator.clipboard.writeText(secret);
    } catch {
      // Not offered without https, or refused: what is selected is copied the old way
      field.focus();
      field.select();
      if (!document.execCommand("copy")) {
        announce("Copy the selected text.");
        return;
      }
    }
    button.textContent = "Copied";
    announce("Copied.");
  }

  fill(
    place,
    el(
      "div",
      { class: "notice made" },
      el("div", { class: "row" }, field, button),
      el("p", {}, words),
    ),
  );
  place.focus();
}
