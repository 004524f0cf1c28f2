/* The page of people and keys. */

import { listen } from "./acts.js";
import { api, messageOf, Problem } from "./api.js";
import { byId, el, fill } from "./dom.js";
import { renew } from "./live.js";
import { showOnce } from "./once.js";
import { watch } from "./silence.js";

/** @param {unknown} problem */
function fail(problem) {
  fill(byId("notice"));
  if (problem === null) return;
  const last = problem instanceof Problem && problem.code === "last_admin";
  tell(
    last
      ? "Nobody would be left who administers this project. Invite another administrator first, and wait until they have signed in."
      : messageOf(problem),
  );
}

/** @param {string} words */
function tell(words) {
  fill(byId("notice"), el("p", { class: "notice danger" }, words));
  byId("notice").scrollIntoView({ block: "center" });
}

/**
 * @param {HTMLElement} _
 * @param {any} answer
 */
function answered(_, answer) {
  if (answer?.link) showLink(answer);
  if (answer?.state === "used")
    tell(`${answer.name} has just signed in with it. To end the access, remove them below.`);
}

/** @param {InvitationMade} made */
function showLink(made) {
  const until = new Date(made.expires_at).toLocaleString([], {
    dateStyle: "medium",
    timeStyle: "short",
  });
  showOnce(byId("made-link"), {
    label: `Link for ${made.name}`,
    secret: new URL(made.link ?? "", location.origin).href,
    words: `Send it to ${made.name}. It signs in one browser, once, until ${until}, and is not shown again.`,
  });
  byId("made-link").scrollIntoView({ block: "center" });
}

/**
 * Ask for something new; null where it was refused, which the page then says.
 *
 * @param {SubmitEvent} event
 * @param {string} path
 * @param {object} body
 */
async function make({ submitter }, path, body) {
  submitter?.setAttribute("disabled", "");
  try {
    const made = await api("POST", path, body);
    fail(null);
    await renew();
    return made;
  } catch (problem) {
    fail(problem);
    return null;
  } finally {
    submitter?.removeAttribute("disabled");
  }
}

/** @param {SubmitEvent} event */
async function invite(event) {
  event.preventDefault();
  const name = named("name");
  if (name === null) return;
  const made = await make(event, "/v1/invitations", {
    name,
    scopes: [byId("role", HTMLSelectElement).value],
    session_id: byId("session", HTMLSelectElement).value || null,
    expires_in_seconds: secondsIn("link-life"),
    key_expires_in_seconds: secondsIn("access"),
  });
  if (made === null) return;
  showLink(made);
  byId("name", HTMLInputElement).value = "";
}

/** @param {SubmitEvent} event */
async function makeKey(event) {
  event.preventDefault();
  const form = byId("make-key", HTMLFormElement);
  const name = named("key-name");
  const scopes = new FormData(form).getAll("scope");
  byId("key-scopes-error").textContent = scopes.length === 0 ? "Choose at least one." : "";
  if (name === null || scopes.length === 0) return;
  const body = { name, scopes, expires_in_seconds: secondsIn("key-ends") };
  const made = await make(event, "/v1/keys", body);
  if (made === null) return;
  showOnce(byId("made-key"), {
    label: `Key of ${made.name}`,
    secret: made.key ?? "",
    words: "Programs send it as “Authorization: Bearer ce_…”. It is not shown again.",
  });
  form.reset();
}

/** @param {string} id */
function named(id) {
  const field = byId(id, HTMLInputElement);
  const name = field.value.trim();
  const wrong = name === "";
  field.setAttribute("aria-invalid", String(wrong));
  byId(`${id}-error`).textContent = wrong ? "Give a name." : "";
  if (wrong) field.focus();
  return wrong ? null : name;
}

/** @param {string} id */
function secondsIn(id) {
  return Number(byId(id, HTMLSelectElement).value) || null;
}

function tellRole() {
  const [chosen] = byId("role", HTMLSelectElement).selectedOptions;
  byId("role-help").textContent = chosen?.dataset.help ?? "";
}

byId("role").addEventListener("change", tellRole);
byId("invite").addEventListener("submit", invite);
byId("make-key").addEventListener("submit", makeKey);
tellRole();
listen({ fail, answered });
watch();
if (new URLSearchParams(location.search).has("session")) byId("name").focus();
