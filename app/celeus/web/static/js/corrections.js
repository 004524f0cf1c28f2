/* Corrections of judgements: the forms of a page, whose answers replace what the page shows. */

import { api, messageOf } from "./api.js";
import { announce, byId, given, only } from "./dom.js";

/** Listen to the forms within `#judgements`. */
export function listen() {
  byId("judgements").addEventListener("submit", correct);
}

/** @param {SubmitEvent} event */
async function correct(event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const error = only(form, ".error");
  const button = only(form, "button", HTMLButtonElement);
  button.disabled = true;
  error.textContent = "";
  try {
    const round = Number(form.dataset.round);
    await api("POST", `/v1/sessions/${given("session")}/amendments`, { round, ...said(form) });
    await renew();
    announce("The judgement is corrected.");
    // What is corrected may be none of what the filter asks for any more
    const summary = document.querySelector(`#round-${round} summary`);
    if (summary instanceof HTMLElement) summary.focus();
  } catch (problem) {
    error.textContent = messageOf(problem);
  }
  button.disabled = false;
}

/**
 * The members of the request that a form makes.
 *
 * @param {HTMLFormElement} form
 */
function said(form) {
  const data = new FormData(form);
  const reason = String(data.get("reason"));
  const chosen = data.get("said");
  if (chosen === "unjudgeable") return { reason, unjudgeable: reason };
  if (chosen !== null) return { reason, ...JSON.parse(String(chosen)) };
  /** @type {NodeListOf<HTMLInputElement>} */
  const inputs = form.querySelectorAll("input[inputmode]");
  const typed = Object.fromEntries([...inputs].map(typedOf));
  return "a" in typed ? { reason, losses: typed } : { reason, ...typed };
}

/**
 * A member with its number; where a high score is good, what is typed is turned into the loss.
 *
 * @param {HTMLInputElement} input
 * @returns {[name: string, value: number]}
 */
function typedOf({ name, value, dataset: { turned } }) {
  const typed = Number(value.trim().replace(",", ".") || "NaN");
  return [name, turned === undefined ? typed : Number((Number(turned) - typed).toPrecision(12))];
}

/** The page anew, as the service has it now. */
async function renew() {
  const text = await (await api("GET", location.href, undefined, { raw: true })).text();
  const page = new DOMParser().parseFromString(text, "text/html");
  byId("judgements").replaceChildren(...only(page, "#judgements").childNodes);
}
