/* A file that becomes a pool: dropped or chosen, looked at, then made; the service says what it is. */

import { isAborted, messageOf, Problem } from "../api.js";
import { announce, byId, el, fill, given } from "../dom.js";
import { drawView } from "../item/payload.js";
import { show } from "../live.js";
import { pageOf } from "./upload.js";

const ADDRESS = "/sessions/new/file";
const ROWS = /\.(csv|tsv|txt|jsonl|ndjson)$/i;
const WHOLE_BYTES = 16 << 20;
const SLICE_BYTES = 1 << 20;
const LINE_BREAK = 10;
const SETTLED_MS = 500;
const CANCELLED = "Cancelled.";
/** What is said of a file, and not of the one before it. */
const FOUND = ["questions", "columns", "looks", "checked", "skip-choice"];

/** @typedef {[draw: Draw, name: string, beside: string]} Item an item, and what judges do not see */

/**
 * What is told of a file: the page of the pool that it would be; that this is not so any longer; and
 * the id of the pool that it has become.
 *
 * @typedef {object} Heard
 * @property {(page: Document) => void} looked
 * @property {() => void} unlooked
 * @property {(pool: string) => void} made
 */

/** The part of the form for a file. */
export class PoolFile {
  /** @param {Heard} heard */
  constructor(heard) {
    this.heard = heard;
    /** @type {File | null} */
    this.file = null;
    /** @type {AbortController | null} */
    this.under = null;
    /** @type {number | undefined} */
    this.settling = undefined;
    this.creating = false;
    this.keyOf = keyring();
    /** @type {Set<string>} the fields that were changed since the service saw them */
    this.changes = new Set();
    /** @type {Item[]} */
    this.items = [];
    this.at = 0;
    /** @type {number} */
    this.limit = given("limit");
    this.listen();
  }

  listen() {
    const drop = byId("drop");
    for (const event of ["dragenter", "dragover"])
      drop.addEventListener(event, () => drop.classList.add("over"));
    for (const event of ["dragleave", "drop"])
      drop.addEventListener(event, () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => this.take([...(event.dataTransfer?.files ?? [])]));
    const input = byId("file", HTMLInputElement);
    input.addEventListener("change", () => {
      this.take([...(input.files ?? [])]);
      // The same file, corrected, may be chosen again
      input.value = "";
    });
    const details = byId("file-details");
    for (const event of ["input", "change"])
      details.addEventListener(event, (heard) => this.hear(heard));
    details.addEventListener("click", ({ target }) => {
      if (target instanceof HTMLButtonElement) this.press(target);
    });
  }

  /**
   * A choice is taken at once, and so are words that answer a question; others when they are typed.
   *
   * @param {Event} event
   */
  hear({ type, target }) {
    const field = /** @type {HTMLInputElement} */ (target);
    if (field.name === "skip") return this.allow();
    if (field.name === "pool_name") return undefined;
    const typed = field.matches("input:not([type=radio], [type=checkbox])");
    if (type !== (typed && !field.name.startsWith("other.") ? "input" : "change")) return undefined;
    return typed && type === "input" ? this.lookSoon(field.name) : this.look(field.name);
  }

  /** @param {HTMLButtonElement} button */
  press({ id }) {
    if (id === "item-before") return this.turn(-1);
    if (id === "item-after") return this.turn(1);
    if (id === "make") return this.make();
    if (id === "cancel") this.under?.abort(new DOMException(CANCELLED, "AbortError"));
    return undefined;
  }

  /**
   * Look at the first of these files.
   *
   * @param {File[]} files
   */
  take(files) {
    const file = files[0];
    if (file === undefined) return undefined;
    this.forget();
    if (files.length > 1)
      return this.refuse("One file at a time, please: a pool is created from one file.");
    if (file.size === 0) return this.refuse(`“${file.name}” is empty.`);
    if (file.size > this.limit)
      return this.refuse(
        `“${file.name}” is ${bytes(file.size)}; this service accepts at most ${bytes(this.limit)} at once.`,
      );
    this.file = file;
    byId("file-name").textContent = file.name;
    byId("file-size").textContent = bytes(file.size);
    byId("pool-name", HTMLInputElement).value =
      file.name.replace(/(\.[^.]*)(\.gz)?$/i, "").slice(0, 200) || file.name;
    byId("file-details").hidden = false;
    return this.look("file");
  }

  forget() {
    this.under?.abort(new DOMException("another file", "AbortError"));
    this.file = null;
    this.at = 0;
    this.changes.clear();
    byId("file-details").hidden = true;
    for (const id of FOUND) document.getElementById(id)?.remove();
    this.unchecked();
  }

  unchecked() {
    clearTimeout(this.settling);
    fill(byId("file-problem"));
    this.heard.unlooked();
    document.getElementById("checked")?.remove();
    // The tick is sent, and stays where as many rows are bad as before
    document.getElementById("skip")?.setAttribute("disabled", "");
    byId("make", HTMLButtonElement).disabled = true;
  }

  /** @param {string} message */
  refuse(message) {
    const words = `${message} Nothing was stored.`;
    fill(byId("file-problem"), el("p", { class: "notice warning" }, words));
  }

  /** @param {string} changed */
  lookSoon(changed) {
    this.changes.add(changed);
    this.allow();
    clearTimeout(this.settling);
    // What is on its way does not know of it; the pool that is being created has all it needs
    if (!this.creating) this.under?.abort(new DOMException("begun anew", "AbortError"));
    this.settling = setTimeout(() => this.look(changed), SETTLED_MS);
  }

  /**
   * Have the service read the file as it is described now, and keep nothing.
   *
   * @param {string} changed
   */
  async look(changed) {
    const { file } = this;
    if (file === null) return undefined;
    // A look would give up the pool that is being created
    if (this.creating) return this.lookSoon(changed);
    this.changes.add(changed);
    this.unchecked();
    const part = await partOf(file);
    if (this.file !== file) return undefined;
    const page = await this.send(part, "Checking the file", part === file ? [] : ["part"]);
    if (page === null || this.file !== file) return undefined;
    show("file-problem", page);
    show("file-details", page);
    const kept = this.changes.has("file") ? null : document.activeElement;
    for (const field of fields()) if (field !== kept || field.name === "skip") reset(field);
    this.changes.clear();
    return this.shown(page);
  }

  /**
   * Go on with what is found in a file.
   *
   * @param {Document} page
   */
  shown(page) {
    const { announced = "", lead = "", plans } = byId("file-details").dataset;
    this.items = JSON.parse(document.getElementById("looks")?.dataset.items ?? "[]");
    if (this.items.length > 0) this.turn(0);
    this.allow();
    if (announced !== "") announce(announced);
    goTo(lead);
    if (plans) this.heard.looked(page);
  }

  /**
   * The file, or a part of it, with these fields of the page.
   *
   * @param {URLSearchParams} said
   * @param {Blob | null} part
   */
  with(said, part = this.file) {
    const form = new FormData();
    form.append("fields", String(said));
    form.append("state", byId("file-details").dataset.state ?? "");
    form.append("file", part ?? new Blob(), this.file?.name);
    return form;
  }

  /**
   * The page that a file is answered with, or null where there is none and it has been said why.
   *
   * @param {Blob} part
   * @param {string} doing
   * @param {string[]} marks
   * @param {Record<string, string>} headers
   * @returns {Promise<Document | null>}
   */
  async send(part, doing, marks, headers = {}) {
    this.under?.abort(new DOMException("begun anew", "AbortError"));
    const under = new AbortController();
    this.under = under;
    progress(doing, 0);
    const form = this.with(this.fields, part);
    for (const mark of marks) form.append(mark, "true");
    const told = (/** @type {number} */ share) =>
      progress(
        share < 1 ? `${doing}: ${Math.round(100 * share)} % sent` : "Sent; reading its rows",
        share,
      );
    try {
      return await pageOf(ADDRESS, form, "file-details", { told, signal: under.signal, headers });
    } catch (error) {
      if (this.under === under) this.tell(error);
      return null;
    } finally {
      if (this.under === under) {
        byId("progress").hidden = true;
        this.under = null;
      }
    }
  }

  /** What stands in the fields, and which were changed. */
  get fields() {
    const body = new URLSearchParams([...this.changes].map((name) => ["changed", name]));
    for (const field of fields())
      if (field.checked || !["radio", "checkbox"].includes(field.type))
        body.append(field.name, field.value);
    return body;
  }

  /** @param {unknown} error */
  tell(error) {
    if (isAborted(error) && messageOf(error) !== CANCELLED) return undefined;
    if (isAborted(error)) announce(CANCELLED);
    else if (!(error instanceof Problem)) throw error;
    const later = error instanceof Problem && error.passing ? " Try again in a moment." : "";
    return this.refuse(`${messageOf(error)}${later}`);
  }

  /**
   * Show another item as a judge will see it.
   *
   * @param {number} step
   */
  turn(step) {
    const { length } = this.items;
    this.at = (this.at + step + length) % length;
    const [draw, name, beside] = this.items[this.at];
    byId("item-place").textContent = `${this.at + 1} of ${length}`;
    fill(byId("item-shown"), drawView(draw, false));
    fill(byId("item-beside"), el("bdi", {}, name), beside);
  }

  /** Let the pool be created where all that it would be has been shown. */
  allow() {
    const make = byId("make", HTMLButtonElement);
    const skip = document.getElementById("skip");
    const skips = !(skip instanceof HTMLInputElement) || skip.checked;
    make.disabled = make.dataset.can !== "true" || !skips || this.creating || this.changes.size > 0;
  }

  async make() {
    const { file } = this;
    // A file may take minutes on its way
    if (file === null || !byId("pool-name", HTMLInputElement).reportValidity()) return undefined;
    fill(byId("file-problem"));
    byId("make", HTMLButtonElement).disabled = true;
    const { name, size, lastModified } = file;
    const { state } = byId("file-details").dataset;
    const key = this.keyOf([String(this.fields), state, name, size, lastModified]);
    this.creating = true;
    const page = await this.send(file, "Creating the pool", ["make"], { "Idempotency-Key": key });
    this.creating = false;
    this.allow();
    if (page === null) return undefined;
    const { made, lead = "" } = page.getElementById("file-details")?.dataset ?? {};
    if (made) {
      this.heard.made(made);
      return this.forget();
    }
    const told = page.querySelector(".faults") === null ? "[id^=of-]" : "[id^=of-], #checked";
    show("file-problem", page);
    for (const { id } of page.querySelectorAll(`#file-details :is(${told})`)) show(id, page);
    return goTo(lead);
  }
}

/**
 * A key for a request; the same while what it asks stays the same, so that it is done once.
 *
 * @returns {(content: unknown) => string}
 */
function keyring() {
  let asked = "";
  let key = "";
  return (content) => {
    const now = JSON.stringify(content);
    if (now !== asked) {
      asked = now;
      key = [...crypto.getRandomValues(new Uint8Array(16))]
        .map((byte) => byte.toString(16).padStart(2, "0"))
        .join("");
    }
    return key;
  };
}

/** @returns {HTMLInputElement[]} */
function fields() {
  return [.../** @type {any} */ (byId("file-details").querySelectorAll("input, select"))];
}

/**
 * What the service says stands in a field.
 *
 * @param {HTMLInputElement | HTMLSelectElement} field
 */
function reset(field) {
  if (field instanceof HTMLSelectElement)
    for (const option of field.options) option.selected = option.defaultSelected;
  else if (["radio", "checkbox"].includes(field.type)) field.checked = field.defaultChecked;
  else if (field.name !== "pool_name") field.value = field.defaultValue;
}

/**
 * The focus of whoever waits for an answer, and is not at work elsewhere in the form, to an element.
 *
 * @param {string} id
 */
function goTo(id) {
  const place = document.getElementById(id);
  const { activeElement: active } = document;
  const waits = active === document.body || active?.matches("#file, button") === true;
  if (place === null || !waits) return;
  const field = place.matches("fieldset") ? place.querySelector("input") : place;
  for (let fold = place.closest("details"); fold !== null; fold = null) fold.open = true;
  field?.focus();
  place.scrollIntoView({ block: "nearest" });
}

/**
 * A large text is looked at by its first part: what is wrong further on is told when it is made.
 *
 * @param {File} file
 * @returns {Promise<Blob>}
 */
async function partOf(file) {
  if (!ROWS.test(file.name) || file.size <= WHOLE_BYTES) return file;
  const start = new Uint8Array(await file.slice(0, SLICE_BYTES).arrayBuffer());
  const end = start.lastIndexOf(LINE_BREAK);
  return end > 0 ? file.slice(0, end + 1) : file;
}

/**
 * @param {string} told
 * @param {number} share
 */
function progress(told, share) {
  byId("progress").hidden = false;
  byId("progress-told").textContent = `${told}…`;
  byId("progress-bar", HTMLProgressElement).value = Math.round(100 * share);
}

/** @param {number} size */
function bytes(size) {
  const units = ["bytes", "kB", "MB", "GB"];
  const at = Math.min(Math.floor(Math.log10(size) / 3), units.length - 1);
  return `${at === 0 ? size : (size / 1000 ** at).toPrecision(3)} ${units[at]}`;
}
