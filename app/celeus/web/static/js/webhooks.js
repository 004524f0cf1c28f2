/* The page of webhooks: make, try, rotate and delete them, and read what came of each message. */

import { api, messageOf, Problem } from "./api.js";
import { announce, byId, el, fill, only } from "./dom.js";
import { watch } from "./silence.js";

const STATES = { delivered: "delivered", failed: "given up", pending: "waits" };

/** @param {string} at */
const moment = (at) => new Date(at).toLocaleString();

/**
 * The form's own words for one of its values, or the value where it has none.
 *
 * @param {string} id
 * @param {string} value
 */
function chosen(id, value) {
  const { options } = byId(id, HTMLSelectElement);
  return [...options].find((one) => one.value === value)?.text ?? value;
}

/** @param {string} event */
function eventName(event) {
  const boxes = byId("new").querySelectorAll("input[name=event]");
  const box = [...boxes].find((one) => one instanceof HTMLInputElement && one.value === event);
  return box?.parentElement?.textContent?.trim() ?? event;
}

/** @param {unknown} error */
function fail(error) {
  fill(
    byId("failure"),
    error === null ? null : el("p", { class: "notice danger" }, messageOf(error)),
  );
}

/**
 * Do something with a button that cannot be pressed meanwhile.
 *
 * @param {string} word
 * @param {() => Promise<void>} work
 * @param {string} kind
 * @param {string} about
 */
function button(word, work, kind, about) {
  const made = el(
    "button",
    { type: "button", class: `button small ${kind}`, "aria-label": `${word}: ${about}` },
    word,
  );
  made.addEventListener("click", async () => {
    made.disabled = true;
    try {
      await work();
      fail(null);
    } catch (error) {
      fail(error);
    }
    made.disabled = false;
    if (made.isConnected) made.focus();
  });
  return made;
}

/**
 * @param {string} secret
 * @param {string} format
 */
function showSecret(secret, format) {
  // Chats never look at a signature
  if (format !== "json") return;
  byId("secret").textContent = secret;
  byId("secret-card").hidden = false;
  byId("secret-card").focus();
}

/** @param {Delivery} one */
function outcome(one) {
  const said = [one.status === null ? null : `${one.status}`, one.note].filter(Boolean).join(" · ");
  return [
    said || "—",
    one.answer ? el("pre", { tabindex: 0, "aria-label": "The answer" }, one.answer) : null,
  ];
}

/**
 * @param {Webhook} hook
 * @param {HTMLElement} place
 */
async function showLog(hook, place) {
  const path = `/v1/webhooks/${hook.id}/deliveries`;
  /** @type {Delivery[]} */
  const found = (await api("GET", path)).data;
  if (found.length === 0) {
    fill(place, el("p", { class: "quiet-text" }, "No message yet."));
    return;
  }
  const rows = found.map((one) =>
    el(
      "tr",
      {},
      el("td", {}, moment(one.created_at)),
      el("td", {}, eventName(one.event)),
      el(
        "td",
        {},
        `${STATES[/** @type {keyof STATES} */ (one.state)]}, attempt ${one.attempts}`,
        one.next_attempt_at === null ? null : `; next ${moment(one.next_attempt_at)}`,
      ),
      el("td", {}, outcome(one)),
      el(
        "td",
        {},
        button(
          "Send again",
          async () => {
            await api("POST", `${path}/${one.id}/retry`);
            announce("The message is sent again.");
            await showLog(hook, place);
          },
          "quiet",
          `${eventName(one.event)}, ${moment(one.created_at)}`,
        ),
      ),
    ),
  );
  const head = ["When", "Event", "State", "What came back", "Action"].map((word) =>
    el("th", { scope: "col" }, word),
  );
  const table = el(
    "table",
    { class: "table" },
    el("thead", {}, el("tr", {}, ...head)),
    el("tbody", {}, ...rows),
  );
  fill(
    place,
    el(
      "div",
      {
        class: "table-scroll",
        tabindex: 0,
        role: "region",
        "aria-label": `Messages to ${hook.url}`,
      },
      table,
    ),
  );
}

/** @param {Webhook} hook */
function card(hook) {
  const path = `/v1/webhooks/${hook.id}`;
  const place = el("div", {}, el("p", { class: "quiet-text" }, "Loading…"));
  const log = el("details", {}, el("summary", {}, "Messages"), place);
  const told = el("p", { class: "quiet-text", role: "status" });
  const look = () => showLog(hook, place).catch(fail);
  log.addEventListener("toggle", () => {
    if (log.open) look();
  });
  const test = async () => {
    /** @type {Delivery} */
    const one = await api("POST", `${path}/test`);
    const what = one.status === null ? "" : ` with ${one.status}`;
    told.textContent =
      one.state === "delivered"
        ? `The test was answered${what}.`
        : `The test did not come through${what}. ${one.note ?? ""}`;
    if (log.open) await look();
  };
  const rotate = async () =>
    showSecret((await api("POST", `${path}/rotate`, {})).secret, hook.format);
  const toggle = async () => {
    await api("PATCH", path, { active: !hook.active });
    await list();
  };
  const remove = async () => {
    if (!window.confirm(`Delete the webhook to ${hook.url} with its log?`)) return;
    await api("DELETE", path);
    announce("The webhook is deleted.");
    await list();
    byId("list-title").tabIndex = -1;
    byId("list-title").focus();
  };
  return el(
    "li",
    { class: "card hook" },
    el("h3", {}, hook.url),
    el(
      "p",
      { class: "quiet-text" },
      [
        chosen("format", hook.format),
        ...hook.events.map(eventName),
        chosen("of", hook.session_id ?? ""),
      ].join(" · "),
    ),
    hook.active
      ? null
      : el("p", { class: "notice warning" }, `Disabled. ${hook.note ?? ""}`.trim()),
    hook.active && hook.failing_since !== null
      ? el("p", { class: "notice warning" }, `Failing since ${moment(hook.failing_since)}.`)
      : null,
    el(
      "div",
      { class: "row" },
      button("Send a test", test, "", hook.url),
      hook.format === "json" ? button("New secret", rotate, "quiet", hook.url) : null,
      button(hook.active ? "Disable" : "Enable", toggle, "quiet", hook.url),
      button("Delete", remove, "danger", hook.url),
    ),
    told,
    log,
  );
}

async function list() {
  /** @type {Webhook[]} */
  const hooks = (await api("GET", "/v1/webhooks")).data;
  fill(
    byId("hooks"),
    hooks.length === 0 ? el("li", { class: "quiet-text" }, "None yet.") : hooks.map(card),
  );
}

/** @param {string} why */
function invalid(why) {
  byId("url-error").textContent = why;
  byId("url").setAttribute("aria-invalid", String(why !== ""));
}

byId("new").addEventListener("submit", async (event) => {
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
    await list();
    showSecret(made.secret, made.format);
  } catch (error) {
    if (error instanceof Problem && error.field === "url") {
      invalid(error.detail);
      byId("url").focus();
    } else fail(error);
  }
  submit.disabled = false;
});
byId("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(byId("secret").textContent ?? "");
    announce("The secret is copied.");
  } catch {
    announce("Your browser blocked copying: select the text and copy it yourself.");
  }
});
byId("hide").addEventListener("click", () => {
  byId("secret").textContent = "";
  byId("secret-card").hidden = true;
  byId("url").focus();
});
list().catch(fail);
watch();
