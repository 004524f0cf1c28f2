/* Secrets that a page shows once: copied, and not made a second time by a reload. */

import { announce } from "./dom.js";

// A reload would send the form again: from now on it asks for the page alone
history.replaceState(null, "", location.href);

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.removeAttribute("disabled");
  button.addEventListener("click", () => copy(button));
}

/** @param {Element} button */
async function copy(button) {
  const field = /** @type {HTMLInputElement} */ (button.previousElementSibling);
  field.select();
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    // Not offered without https, or refused: what is selected is copied the old way
    if (!document.execCommand("copy")) return announce("Copy the selected text.");
  }
  button.textContent = "Copied";
  return announce("Copied.");
}
