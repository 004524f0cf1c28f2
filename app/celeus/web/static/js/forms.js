/* Forms that are sent from where they stand: the page becomes what the service answers.

   Without this script the browser sends them, and shows the answer as a page of its own. */

import { announce, byId, el } from "./dom.js";
import { read, ready, show } from "./live.js";

const ANSWER_MS = 120_000;
const WRONG = "[role=alert]:not(:empty)";
let sending = false;

byId("main").addEventListener("submit", async (event) => {
  const form = event.target;
  if (!(form instanceof HTMLFormElement) || form.method !== "post") return;
  // What leads to another place of the page is the browser's own
  if (form.dataset.away !== undefined) return;
  event.preventDefault();
  // A second press means the same
  if (sending) return;
  sending = true;
  await send(form, event.submitter).finally(() => {
    sending = false;
  });
});
byId("main").addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest("button[data-copy]") : null;
  if (button !== null) copy(button);
});
ready();

/**
 * @param {HTMLFormElement} form
 * @param {HTMLElement | null} submitter
 */
async function send(form, submitter) {
  form.querySelector(".unsent")?.remove();
  for (const kept of document.querySelectorAll("[data-own=sent]")) kept.removeAttribute("data-own");
  const { said = "", swap = "main" } = form.dataset;
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form, submitter)));
  try {
    const signal = AbortSignal.timeout(ANSWER_MS);
    const answer = await fetch(form.action, { method: "POST", body, signal });
    const address = new URL(answer.url);
    if (address.pathname !== location.pathname) return location.assign(address);
    // A secret is shown where it was asked for; all else leads back to the page
    if (answer.redirected) settle(form);
    if (answer.redirected && swap === "main") history.replaceState(null, "", address);
    const page = read(await answer.text());
    if (!swap.split(" ").every((id) => show(id, page))) throw new Error("no page of the service");
    const popover = document.querySelector("[popover]:popover-open");
    if (popover instanceof HTMLElement && popover.querySelector(WRONG) === null)
      popover.hidePopover();
    if (answer.redirected) announce(said);
    else keep(form, answer.ok);
    if (answer.ok) form.reset();
  } catch {
    const words = "The service does not answer as it should. Try again in a moment.";
    form.append(el("p", { class: "error unsent", role: "alert" }, words));
  }
  return lead(form, submitter);
}

/**
 * A page that asks for itself anew leaves a secret, or what is wrong, until the next form is sent.
 *
 * @param {HTMLFormElement} form
 * @param {boolean} made
 */
function keep(form, made) {
  const told = made ? ".made" : `#main ${WRONG}`;
  const place = (made ? null : form.closest("[popover]")) ?? document.querySelector(told);
  place?.closest("[id]")?.setAttribute("data-own", "sent");
}

/**
 * What was unfolded for a form is folded when that is done.
 *
 * @param {HTMLFormElement} form
 */
function settle(form) {
  const details = form.closest("details");
  details?.removeAttribute("open");
  details?.querySelector("summary")?.focus();
}

/**
 * The focus to a new secret or a wrong field, and to something where its place has gone.
 *
 * @param {HTMLFormElement} form
 * @param {HTMLElement | null} submitter
 */
function lead(form, submitter) {
  const place = document.querySelector(".made") ?? form.querySelector("[aria-invalid]");
  if (place instanceof HTMLElement) return place.focus();
  if (document.activeElement !== document.body) return undefined;
  return (
    submitter?.matches(":enabled") && submitter.isConnected ? submitter : byId("main")
  ).focus();
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
