/* The page of webhooks: make, try, rotate and delete them, and read what came of each message. */

import { listen } from "./acts.js";
import { api, messageOf, Problem } from "./api.js";
import { byId, el, fill, only } from "./dom.js";
import { renew, swap } from "./live.js";
import { showOnce } from "./once.js";
import { watch } from "./silence.js";

/** @param {unknown} error */
function fail(error) {
  fill(
    byId("failure"),
    error === null ? null : el("p", { class: "notice danger" }, messageOf(error)),
  );
}

/** @param {NewWebhook} made */
function showSecret({ format, secret }) {
  // Chats never look at a signature
  if (format !== "json") return;
  showOnce(byId("secret"), {
    label: "The secret",
    secret,
    words: "Whoever receives the messages verifies them with it. It cannot be shown again.",
  });
}

/** @param {Delivery} test */
function outcome({ note, state, status }) {
  const what = status === null ? "" : ` with ${status}`;
  return state === "delivered"
    ? `The test was answered${what}.`
    : `The test did not come through${what}. ${note ?? ""}`;
}

/** @param {string} hook */
function showLog(hook) {
  return swap(`log-${hook}`, `/webhooks/${hook}/messages`).catch(fail);
}

/**
 * @param {HTMLElement} pressed
 * @param {any} answer
 */
function answered(pressed, answer) {
  const card = /** @type {HTMLElement | null} */ (pressed.closest(".hook"));
  if (pressed.dataset.do === "rotate") showSecret(answer);
  if (card === null || !card.isConnected) return;
  if (pressed.dataset.do === "test") only(card, "[role=status]").textContent = outcome(answer);
  if (only(card, "details", HTMLDetailsElement).open) showLog(card.id);
}

/** @param {string} why */
function invalid(why) {
  byId("url-error").textContent = why;
  byId("url").setAttribute("aria-invalid", String(why !== ""));
}

/** @param {SubmitEvent} event */
async function make(event) {
  event.preventDefault();
  const form = byId("new", HTMLFormElement);
  const values = new FormData(form);
  invalid("");
  fail(null);
  const submit = only(form, "button.primary", HTMLButtonElement);
  submit.disabled = true;
  try {
    /** @type {NewWebhook} */
    const made = await api("POST", "/v1/webhooks", {
      url: values.get("url"),
      format: values.get("format"),
      session_id: values.get("session") || null,
      events: values.getAll("event"),
    });
    form.reset();
    await renew();
    showSecret(made);
  } catch (error) {
    if (error instanceof Problem && error.field === "url") {
      invalid(error.detail);
      byId("url").focus();
    } else fail(error);
  }
  submit.disabled = false;
}

byId("new").addEventListener("submit", make);
// The event does not bubble
byId("main").addEventListener(
  "toggle",
  ({ target }) => {
    const card = target instanceof HTMLDetailsElement && target.open ? target.closest("li") : null;
    if (card) showLog(card.id);
  },
  true,
);
listen({ fail, answered });
watch();
