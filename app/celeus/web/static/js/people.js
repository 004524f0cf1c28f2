/* The page of people and keys. */

import { api, messageOf, Problem } from "./api.js";
import { announce, byId, el, fill, given, only } from "./dom.js";
import { ago, nameOf } from "./format.js";
import { showOnce } from "./people/once.js";
import { does, ROLES, until } from "./people/roles.js";
import { watch } from "./silence.js";

/** @type {string} */
const own = given("own-key");
const asked = new URLSearchParams(location.search).get("session");
const invitations = listIn("invitations", "/v1/invitations?state=open", invitationRow, [
  "No link is open.",
]);
const members = listIn("members", "/v1/keys?person=true&usable=true&pending=false", memberRow, [
  "Nobody has signed in yet.",
]);
const keys = listIn("keys", "/v1/keys?person=false&usable=true", keyRow, ["There is no key yet."]);

setUp();
watch();

async function setUp() {
  const role = byId("role", HTMLSelectElement);
  fill(role, ...ROLES.map(({ scope, does: word }) => el("option", { value: scope }, word)));
  role.addEventListener("change", tellRole);
  tellRole();
  fill(
    byId("key-scopes"),
    el("legend", {}, "What it may do"),
    ...ROLES.map(({ scope, does: word, help }) =>
      el(
        "label",
        { class: "choice" },
        el("input", { type: "checkbox", name: "scope", value: scope }),
        el("span", {}, `${word} `, el("span", { class: "quiet-text" }, help)),
      ),
    ),
  );
  byId("invite", HTMLFormElement).addEventListener("submit", invite);
  byId("make-key", HTMLFormElement).addEventListener("submit", makeKey);
  if (asked !== null) {
    // Chosen before its name is known, as somebody may be faster than the lists
    byId("session").append(el("option", { value: asked, selected: true }, "the one you came from"));
    byId("name").focus();
  }
  await Promise.all([invitations.load(), members.load(), keys.load(), offerSessions()]);
}

function tellRole() {
  const chosen = ROLES.find(({ scope }) => scope === byId("role", HTMLSelectElement).value);
  byId("role-help").textContent = chosen?.help ?? "";
}

async function offerSessions() {
  const select = byId("session", HTMLSelectElement);
  try {
    /** @type {SessionPage} */
    const page = await api("GET", "/v1/sessions?state=active&limit=100");
    const others = page.data.filter(({ id }) => id !== asked);
    select.append(...others.map((one) => el("option", { value: one.id }, nameOf(one))));
    if (asked === null) return;
    const wanted = await api("GET", `/v1/sessions/${encodeURIComponent(asked)}`);
    only(select, `option[value="${CSS.escape(asked)}"]`, HTMLOptionElement).textContent =
      nameOf(wanted);
  } catch (error) {
    tell(messageOf(error));
  }
}

/** @param {SubmitEvent} event */
async function invite(event) {
  event.preventDefault();
  const name = named("name");
  if (name === null) return;
  const made = await act(event.submitter, "POST", "/v1/invitations", {
    name,
    scopes: [byId("role", HTMLSelectElement).value],
    session_id: byId("session", HTMLSelectElement).value || null,
    expires_in_seconds: Number(byId("link-life", HTMLSelectElement).value),
    key_expires_in_seconds: secondsIn("access"),
  });
  if (made === null) return;
  showLink(made);
  byId("name", HTMLInputElement).value = "";
  await Promise.all([invitations.load(), members.load()]);
}

/** @param {InvitationMade} made */
function showLink(made) {
  showOnce(byId("made-link"), {
    label: `Link for ${made.name}`,
    secret: new URL(made.link ?? "", location.origin).href,
    words: `Send it to ${made.name}. It signs in one browser, once (${until(made.expires_at)}), and is not shown again.`,
  });
}

/** @param {SubmitEvent} event */
async function makeKey(event) {
  event.preventDefault();
  const name = named("key-name");
  const scopes = [...document.querySelectorAll("#key-scopes input:checked")].map((box) =>
    box instanceof HTMLInputElement ? box.value : "",
  );
  byId("key-scopes-error").textContent = scopes.length === 0 ? "Choose at least one." : "";
  if (name === null || scopes.length === 0) return;
  const made = await act(event.submitter, "POST", "/v1/keys", {
    name,
    scopes,
    expires_in_seconds: secondsIn("key-ends"),
  });
  if (made === null) return;
  showOnce(byId("made-key"), {
    label: `Key of ${made.name}`,
    secret: made.key ?? "",
    words: "Programs send it as “Authorization: Bearer ce_…”. It is not shown again.",
  });
  byId("make-key", HTMLFormElement).reset();
  await keys.load();
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
  const { value } = byId(id, HTMLSelectElement);
  return value === "" ? null : Number(value);
}

/** @param {Invitation} one */
function invitationRow(one) {
  const leads = one.path === "/" ? "opens the start page" : "opens a session";
  return row(
    one.name,
    [does(one.scopes), leads, `link: ${until(one.expires_at)}`],
    button("Withdraw", `Withdraw the link for ${one.name}`, async (pressed) => {
      const told = `The link for ${one.name} will not work any more.`;
      if (!(await sure(`Withdraw the link for ${one.name}?`, told, "Withdraw it"))) return;
      const ended = await act(pressed, "POST", `/v1/invitations/${one.id}/revoke`);
      if (ended === null) return;
      if (ended.state === "used")
        tell(`${one.name} has just signed in with it. To end the access, remove them below.`);
      else announce(`The link for ${one.name} is withdrawn.`);
      await Promise.all([invitations.load(), members.load()]);
    }),
  );
}

/** @param {Key} one */
function memberRow(one) {
  const here = one.id === own;
  const choice = roleChoice(one);
  return row(
    one.name,
    [
      here ? "you" : null,
      does(one.scopes),
      one.last_used_at === null
        ? "has not signed in yet"
        : `last seen ${ago(Date.parse(one.last_used_at))}`,
      one.expires_at === null ? null : `access: ${until(one.expires_at)}`,
    ],
    choice,
    button("New link", `New link for ${one.name}`, async (pressed) => {
      const made = await act(pressed, "POST", "/v1/invitations", { key_id: one.id });
      if (made === null) return;
      showLink(made);
      byId("made-link").scrollIntoView({ block: "center" });
      await invitations.load();
    }),
    button("Remove", `Remove ${one.name}`, async (pressed) => {
      const told = `${here ? "You are" : `${one.name} is`} signed out everywhere within seconds, for good. Labels given stay.`;
      const title = here ? "Remove yourself?" : `Remove ${one.name}?`;
      if (!(await sure(title, told, "Remove"))) return;
      if ((await act(pressed, "POST", `/v1/keys/${one.id}/revoke`)) === null) return;
      announce(`${one.name} is removed.`);
      await Promise.all([members.load(), invitations.load()]);
    }),
  );
}

/** @param {Key} one */
function roleChoice(one) {
  const now = one.scopes.length === 1 ? one.scopes[0] : "";
  const select = el(
    "select",
    { "aria-label": `What ${one.name} does` },
    now === "" ? el("option", { value: "", selected: true }, does(one.scopes)) : null,
    ...ROLES.map(({ scope, does: word }) =>
      el("option", { value: scope, selected: scope === now }, word),
    ),
  );
  select.addEventListener("change", async () => {
    const role = ROLES.find(({ scope }) => scope === select.value);
    const title = `${one.name} ${role?.does ?? ""} from now on?`;
    const agreed = role !== undefined && (await sure(title, role.help, `${one.name} ${role.does}`));
    if (agreed) await act(select, "PATCH", `/v1/keys/${one.id}`, { scopes: [select.value] });
    await members.load();
  });
  return select;
}

/** @param {Key} one */
function keyRow(one) {
  return row(
    one.name,
    [
      one.id === own ? "yours" : null,
      does(one.scopes),
      one.last_used_at === null ? "never used" : `last used ${ago(Date.parse(one.last_used_at))}`,
      until(one.expires_at),
    ],
    button("Revoke", `Revoke the key ${one.name}`, async (pressed) => {
      const told = "Programs that send it are refused within seconds, for good.";
      if (!(await sure(`Revoke the key ${one.name}?`, told, "Revoke it"))) return;
      if ((await act(pressed, "POST", `/v1/keys/${one.id}/revoke`)) === null) return;
      announce(`The key ${one.name} is revoked.`);
      await keys.load();
    }),
  );
}

/**
 * @param {string} name
 * @param {(string | null)[]} facts
 * @param {...HTMLElement} actions
 */
function row(name, facts, ...actions) {
  return el(
    "li",
    {},
    el(
      "div",
      { class: "person" },
      el("p", { class: "person-name" }, el("bdi", {}, name)),
      el("p", { class: "quiet-text" }, facts.filter((fact) => fact !== null).join(" · ")),
    ),
    el("div", { class: "person-actions" }, ...actions),
  );
}

/**
 * @param {string} words
 * @param {string} label
 * @param {(pressed: HTMLButtonElement) => void} press
 */
function button(words, label, press) {
  const made = el(
    "button",
    {
      type: "button",
      class: "button small",
      "aria-label": label,
      on: { click: () => press(made) },
    },
    words,
  );
  return made;
}

/**
 * Ask for a change; null where it was refused, which the page then says.
 *
 * @param {Element | null} pressed
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 */
async function act(pressed, method, path, body) {
  fill(byId("notice"));
  pressed?.setAttribute("disabled", "");
  try {
    return await api(method, path, body);
  } catch (error) {
    tell(
      error instanceof Problem && error.code === "last_admin"
        ? "Nobody would be left who administers this project. Invite another administrator first, and wait until they have signed in."
        : messageOf(error),
    );
    return null;
  } finally {
    pressed?.removeAttribute("disabled");
  }
}

/** @param {string} words */
function tell(words) {
  fill(byId("notice"), el("p", { class: "notice danger" }, words));
  byId("notice").scrollIntoView({ block: "center" });
}

/**
 * Whether somebody means it.
 *
 * @param {string} title
 * @param {string} words
 * @param {string} yes
 * @returns {Promise<boolean>}
 */
function sure(title, words, yes) {
  const dialog = byId("sure", HTMLDialogElement);
  byId("sure-title").textContent = title;
  byId("sure-words").textContent = words;
  byId("sure-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

/**
 * A list that comes page by page.
 *
 * @template T
 * @param {string} id
 * @param {string} path
 * @param {(one: T) => HTMLElement} show
 * @param {string[]} nothing
 */
function listIn(id, path, show, nothing) {
  /** @param {string | null} after */
  async function page(after) {
    const cursor = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    return await api("GET", `${path}${cursor}`);
  }

  async function load() {
    const place = byId(id);
    try {
      const first = await page(null);
      if (first.data.length === 0) {
        fill(place, el("p", { class: "quiet-text" }, ...nothing));
        return;
      }
      const list = el("ul", { class: "people" }, ...first.data.map(show));
      fill(place, list);
      offerMore(place, list, first.next);
    } catch (error) {
      fill(place, el("p", { class: "notice warning" }, messageOf(error)));
    }
  }

  /**
   * @param {HTMLElement} place
   * @param {HTMLUListElement} list
   * @param {string | null} next
   */
  function offerMore(place, list, next) {
    if (next === null) return;
    const more = button("Show more", "Show more", async () => {
      try {
        const behind = await page(next);
        list.append(...behind.data.map(show));
        more.remove();
        offerMore(place, list, behind.next);
      } catch (error) {
        tell(messageOf(error));
      }
    });
    place.append(more);
  }

  return { load };
}
