/* What the buttons of a session do; the server renders which of them can be pressed now. */

import { listen as acts } from "../acts.js";
import { api, messageOf, Problem } from "../api.js";
import { askDelete } from "../deletion.js";
import { announce, byId, el, fill, given, only } from "../dom.js";
import { counted, nameOf } from "../format.js";

const CERTIFICATE_MS = 120_000;

/** @type {AnySession} */
const { id } = given("session");
const path = `/v1/sessions/${id}`;
let renew = async () => {};

/** @type {Record<string, (pressed: HTMLButtonElement) => void>} */
const WORK = { certificate, close: askClose, destroy, precision: askPrecision };

/**
 * Do what buttons say, and `look` anew after a change.
 *
 * @param {() => Promise<void>} look
 */
export function listen(look) {
  renew = look;
  byId("main").addEventListener("click", ({ target }) => {
    const pressed = target instanceof Element ? target.closest("button") : null;
    if (pressed !== null) WORK[pressed.dataset.do ?? ""]?.(pressed);
  });
  only(byId("precision-dialog"), "form").addEventListener("submit", setPrecision);
  only(byId("close-dialog"), "form").addEventListener("submit", close);
  acts({ fail, look });
}

/** @param {SessionChange} settings */
async function send(settings) {
  await api("PATCH", path, settings, { retry: 2 });
  fail(null);
  await renew();
}

function destroy() {
  /** @type {AnySession} */
  const session = given("session");
  askDelete({
    path,
    title: "Delete this session for good?",
    words: `Its ${counted(session.rounds.judged, "label")}, comments, links and certificates go. What stays is that it existed, with digests: later certificates on its pool count it.`,
    name: session.name ?? id,
    done: () => location.assign("/"),
  });
}

function askPrecision() {
  const input = byId("precision", HTMLInputElement);
  const dialog = byId("precision-dialog", HTMLDialogElement);
  input.value = dialog.dataset.precision ?? "";
  invalid("");
  dialog.showModal();
  input.select();
}

/** @param {SubmitEvent} event */
async function setPrecision(event) {
  // Enter in the field is the button that comes first; Escape closes the dialog by itself
  if (event.submitter?.getAttribute("value") === "cancel") return;
  event.preventDefault();
  const written = byId("precision", HTMLInputElement).value.trim().replace(",", ".");
  const precision = written === "" ? null : Number(written);
  if (precision !== null && !(precision > 0)) {
    invalid("A width is a number above 0, such as 0.05.");
    return;
  }
  try {
    await send({ precision });
    byId("precision-dialog", HTMLDialogElement).close();
    announce(
      precision === null
        ? "The session no longer has a precision."
        : `The precision is now ${precision}.`,
    );
  } catch (problem) {
    const rule = problem instanceof Problem ? problem.rule : null;
    invalid(rule === null ? messageOf(problem) : `${messageOf(problem)} (${rule})`);
  }
}

/** @param {string} why */
function invalid(why) {
  byId("precision-error").textContent = why;
  byId("precision").toggleAttribute("aria-invalid", why !== "");
  if (why !== "") byId("precision").focus();
}

function askClose() {
  byId("close-error").textContent = "";
  byId("close-dialog", HTMLDialogElement).showModal();
}

/** @param {SubmitEvent} event */
async function close(event) {
  const { submitter } = event;
  if (!(submitter instanceof HTMLButtonElement) || submitter.value !== "close") return;
  event.preventDefault();
  submitter.disabled = true;
  try {
    await send({ state: "closed" });
    byId("close-dialog", HTMLDialogElement).close();
    announce("The session is closed.");
    only(byId("lead"), "button").focus();
  } catch (problem) {
    byId("close-error").textContent = messageOf(problem);
  }
  submitter.disabled = false;
}

/** @param {HTMLButtonElement} pressed */
async function certificate(pressed) {
  pressed.setAttribute("aria-busy", "true");
  try {
    const options = { raw: true, wait: CERTIFICATE_MS };
    const answer = await api("GET", `${path}/certificate`, undefined, options);
    const href = URL.createObjectURL(await answer.blob());
    el("a", { href, download: `${id}.certificate.json` }).click();
    // Browsers may begin to read it a moment later
    setTimeout(() => URL.revokeObjectURL(href), 60_000);
    fail(null);
    announce(`The certificate of ${nameOf(given("session"))} has been downloaded.`);
  } catch (problem) {
    fail(problem);
  }
  pressed.removeAttribute("aria-busy");
}

/** @param {unknown} error */
function fail(error) {
  byId("failure").hidden = error === null;
  fill(byId("failure"), error === null ? "" : messageOf(error));
}
