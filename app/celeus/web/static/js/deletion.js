/* Deleting for good: a dialog that says what goes, and has typed what certificates rest on. */

import { api, messageOf, Problem } from "./api.js";
import { el, fill } from "./dom.js";

/**
 * @typedef {object} Doomed
 * @property {string} path where the service has it
 * @property {string} title
 * @property {string} words what goes, and what stays
 * @property {string} name to be typed where certificates were issued
 * @property {() => void} done
 */

/**
 * Ask whether somebody means it, and delete it then.
 *
 * @param {Doomed} doomed
 */
export function askDelete({ path, title, words, name, done }) {
  const error = el("p", { class: "error", id: "delete-error", role: "alert" });
  const input = el("input", {
    id: "delete-name",
    autocomplete: "off",
    "aria-describedby": "delete-error",
  });
  const naming = el(
    "div",
    { class: "field", hidden: true },
    el(
      "label",
      { for: "delete-name" },
      "Type “",
      el("bdi", {}, name),
      "” to delete it all the same",
    ),
    input,
  );
  const yes = el("button", { class: "button danger", value: "delete" }, "Delete for good");
  const no = el("button", { class: "button", value: "cancel", autofocus: true }, "Keep it");
  const form = el(
    "form",
    { method: "dialog", class: "stack", on: { submit: submitted } },
    el("h2", { id: "delete-title" }, title),
    el("p", {}, el("strong", {}, "This cannot be undone."), ` ${words}`),
    naming,
    error,
    el("div", { class: "row" }, yes, no),
  );
  const dialog = el("dialog", { id: "delete-dialog", "aria-labelledby": "delete-title" }, form);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();

  /** @param {SubmitEvent} event */
  async function submitted(event) {
    if (event.submitter === no) return;
    event.preventDefault();
    const typed = input.value.trim();
    if (!naming.hidden && typed !== name.trim()) {
      fill(error, "This is not its name.");
      input.focus();
      return;
    }
    yes.disabled = true;
    try {
      const query = naming.hidden ? "" : `?${new URLSearchParams({ purge: name })}`;
      await api("DELETE", path + query);
      gone();
    } catch (problem) {
      // By somebody else, or by a request whose answer was lost
      if (problem instanceof Problem && problem.status === 404) return gone();
      fill(error, messageOf(problem));
      if (problem instanceof Problem && problem.code === "session_certified") {
        naming.hidden = false;
        input.focus();
      }
    }
    yes.disabled = false;
    return undefined;
  }

  function gone() {
    dialog.close();
    done();
  }
}
