/* A file that becomes a pool: dropped or chosen, looked at, then made. */

import { Problem } from "../api.js";
import { announce, byId, el, fill, given } from "../dom.js";
import { count, counted } from "../format.js";
import { Unusable, blame, clear, goToWrong, keyring, numberIn, picked, placeOf, text } from "./fields.js";
import { upload } from "./upload.js";

const MEDIA = {
  csv: "text/csv",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
  parquet: "application/vnd.apache.parquet",
  pq: "application/vnd.apache.parquet",
};
const PARQUET = MEDIA.parquet;
const WHOLE_BYTES = 16 << 20;
const SLICE_BYTES = 1 << 20;
const SHOWN_ROWS = 8;
const SHOWN_FAULTS = 12;
const LINE_BREAK = 10;
const SETTLED_MS = 500;
const PLACES = { name: "pool-name" };

/** The part of the form for a file; `made` is called with the pool it has become. */
export class PoolFile {
  constructor(made) {
    this.made = made;
    this.file = null;
    this.media = null;
    this.under = null;
    this.settling = null;
    this.keyOf = keyring();
    this.limit = given("limit");
    this.listen();
  }

  listen() {
    const drop = byId("drop");
    for (const event of ["dragenter", "dragover"]) drop.addEventListener(event, () => drop.classList.add("over"));
    for (const event of ["dragleave", "drop"]) drop.addEventListener(event, () => drop.classList.remove("over"));
    drop.addEventListener("drop", (event) => this.take([...event.dataTransfer.files]));
    byId("file").addEventListener("change", (event) => {
      this.take([...event.target.files]);
      // The same file, corrected, may be chosen again
      event.target.value = "";
    });
    for (const kind of document.querySelectorAll("input[name=kind]")) kind.addEventListener("change", () => this.checkAgain());
    for (const id of ["loss-lower", "loss-upper"]) byId(id).addEventListener("input", () => this.checkSoon());
    byId("cancel").addEventListener("click", () => this.under?.abort(new DOMException("cancelled", "AbortError")));
    byId("skip").addEventListener("change", () => this.allow());
    byId("make").addEventListener("click", () => this.make());
  }

  /** Look at the first of these files. */
  take(files) {
    const file = files[0];
    if (file === undefined) return;
    this.forget();
    const media = MEDIA[file.name.split(".").at(-1).toLowerCase()];
    if (files.length > 1) return this.refuse("One file at a time, please: a pool is made of one file.");
    if (media === undefined) {
      return this.refuse(`This page reads CSV (.csv), JSON Lines (.jsonl) and Parquet (.parquet). “${file.name}” is none of them by its name.`);
    }
    if (file.size === 0) return this.refuse(`“${file.name}” is empty.`);
    if (file.size > this.limit) {
      return this.refuse(`“${file.name}” has ${bytes(file.size)}; this service takes at most ${bytes(this.limit)} at once.`);
    }
    this.file = file;
    this.media = media;
    byId("file-name").textContent = file.name;
    byId("file-size").textContent = bytes(file.size);
    byId("pool-name").value = file.name.replace(/\.[^.]*$/, "").slice(0, 200) || file.name;
    byId("file-details").hidden = false;
    return this.checkAgain();
  }

  forget() {
    this.under?.abort(new DOMException("another file", "AbortError"));
    this.file = null;
    fill(byId("file-problem"));
    byId("file-details").hidden = true;
    this.unchecked();
  }

  unchecked() {
    this.found = null;
    byId("checked").hidden = true;
    byId("skip-choice").hidden = true;
    byId("skip").checked = false;
    byId("make").disabled = true;
  }

  refuse(message) {
    fill(byId("file-problem"), el("p", { class: "notice warning" }, message, " Nothing was kept."));
  }

  checkSoon() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.checkAgain(), SETTLED_MS);
  }

  /** Have the service read the file as this kind of loss, and keep nothing. */
  async checkAgain() {
    showLimits();
    if (this.file === null) return;
    clear(byId("file-details"));
    fill(byId("file-problem"));
    this.unchecked();
    const file = this.file;
    const part = await this.part(file);
    if (this.file !== file) return;
    let query;
    try {
      query = this.query({ name: "checked", dry_run: true, preview: SHOWN_ROWS });
    } catch (wrong) {
      return this.tell(wrong);
    }
    const found = await this.send(part, query, "Looking at the file");
    if (found === null) return;
    this.found = found;
    this.whole = part === file;
    this.show(found);
  }

  /* A large text is looked at by its first part: what is wrong further on is told when it is made. */
  async part(file) {
    if (this.media === PARQUET || file.size <= WHOLE_BYTES) return file;
    const start = new Uint8Array(await file.slice(0, SLICE_BYTES).arrayBuffer());
    const end = start.lastIndexOf(LINE_BREAK);
    return end > 0 ? file.slice(0, end + 1) : file;
  }

  query(more) {
    const kind = picked("kind");
    const query = new URLSearchParams({ kind, ...more });
    if (kind === "bounded") query.set("lower", numberIn("loss-lower"));
    if (kind !== "zero_one") query.set("upper", numberIn("loss-upper"));
    return query;
  }

  /** The answer, or null where there is none and it has been said why. */
  async send(part, query, doing, headers = {}) {
    this.under?.abort(new DOMException("begun anew", "AbortError"));
    const under = new AbortController();
    this.under = under;
    progress(doing, 0);
    try {
      const told = (share) => progress(share < 1 ? `${doing}: ${Math.round(100 * share)} % sent` : "Sent; its rows are being read", share);
      return await upload(`/v1/pool-files?${query}`, part, this.media, { told, signal: under.signal, headers });
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

  tell(error) {
    if (error instanceof Unusable) return blame(error.id, error.message);
    if (error.name === "AbortError") {
      announce("Cancelled");
      return this.refuse("Cancelled.");
    }
    if (!(error instanceof Problem)) throw error;
    const place = placeOf(error.field, PLACES);
    if (place !== null && byId("file-details").contains(byId(place))) {
      blame(place, said(error));
      return goToWrong(byId("file-details"));
    }
    if (error.errors.length > 0) return this.showFaults(error.errors, error.told.total_errors);
    return this.refuse(`${said(error)}${error.passing ? " Try again in a moment." : ""}`);
  }

  show(found) {
    const all = found.items + found.skipped;
    const rows = this.whole ? counted(all, "row") : `The first ${counted(all, "row")}`;
    const good = found.skipped === 0 ? "every row can become an item" : `${counted(found.items, "row")} can become items, ${count(found.skipped)} cannot`;
    fill(
      byId("checked"),
      el("p", {}, el("strong", {}, `${rows}: `), `${good}. `, guesses(found)),
      this.whole ? null : el("p", { class: "quiet-text" }, "The file is large: the rest is read when the pool is made, and if a row is bad nothing is kept."),
      found.preview.length > 0 ? preview(found) : null,
    );
    byId("checked").hidden = false;
    if (found.skipped > 0) this.showFaults(found.errors, found.skipped);
    byId("skip-choice").hidden = found.skipped === 0 || found.items === 0;
    byId("skip-words").textContent = `Leave the ${counted(found.skipped, "bad row")} out and make a pool of the others`;
    announce(`${rows}: ${good}`);
    this.allow();
  }

  showFaults(faults, total) {
    const told = faults.slice(0, SHOWN_FAULTS);
    const more = total - told.length;
    byId("checked").append(
      el(
        "div",
        { class: "notice warning" },
        el("p", {}, "These rows cannot become items:"),
        el("ul", { class: "faults" }, told.map((fault) => el("li", {}, faultWords(fault)))),
        more > 0 ? el("p", { class: "quiet-text" }, `and ${count(more)} more.`) : null,
      ),
    );
    byId("checked").hidden = false;
  }

  allow() {
    const found = this.found;
    byId("make").disabled = found === null || found.items === 0 || (found.skipped > 0 && !byId("skip").checked);
  }

  async make() {
    clear(byId("file-details"));
    const name = text("pool-name");
    if (name === "") {
      blame("pool-name", "The pool needs a name.");
      return goToWrong(byId("file-details"));
    }
    byId("make").disabled = true;
    const skip = byId("skip").checked;
    const query = this.query({ name, on_error: skip ? "skip" : "fail" });
    const { size, lastModified } = this.file;
    const headers = { "Idempotency-Key": this.keyOf([String(query), this.file.name, size, lastModified]) };
    byId("loss-kind").disabled = true;
    const made = await this.send(this.file, query, "Making the pool", headers);
    byId("loss-kind").disabled = false;
    if (made === null) return this.allow();
    this.forget();
    return this.made(made.pool);
  }
}

function showLimits() {
  const kind = picked("kind");
  byId("limits").hidden = kind === "zero_one";
  byId("lower-field").hidden = kind !== "bounded";
  byId("upper-help").textContent = kind === "cross_entropy" ? "Losses above it count as this much; it cannot be changed after a label is seen." : "";
}

function progress(told, share) {
  byId("progress").hidden = false;
  byId("progress-told").textContent = `${told}…`;
  byId("progress-bar").value = Math.round(100 * share);
}

function guesses(found) {
  if (found.columns.some((column) => column.startsWith("surrogate."))) return "They carry a surrogate.";
  if (found.classes !== null) return `They carry probabilities of ${count(found.classes)} classes.`;
  return "They carry no surrogate: the session works without one, and needs more labels.";
}

function preview(found) {
  const names = [...new Set(found.preview.flatMap((row) => Object.keys(row.cells)))];
  const bad = new Set(found.errors.map((fault) => fault.line));
  return el(
    "div",
    { class: "preview", tabindex: 0, role: "region", "aria-label": "First rows of the file" },
    el(
      "table",
      { class: "table" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Line"), names.map((name) => el("th", { scope: "col" }, name === "" ? "as it stands" : name)))),
      el(
        "tbody",
        {},
        found.preview.map((row) => el("tr", { class: bad.has(row.line) ? "bad" : null }, el("th", { scope: "row" }, count(row.line)), names.map((name) => el("td", {}, row.cells[name] ?? "")))),
      ),
    ),
  );
}

function faultWords(fault) {
  const where = fault.field === "" ? "" : `, ${fault.field}`;
  return `Line ${count(fault.line)}${where}: has to be ${fault.rule}; found ${fault.value}`;
}

function said(problem) {
  const rule = problem.rule === null ? "" : ` It has to be ${problem.rule}.`;
  const value = problem.field !== null && problem.value !== null && problem.value !== "None" ? ` Found in ${problem.field}: ${problem.value}.` : "";
  return `${problem.detail}${rule}${value}`;
}

function bytes(size) {
  const units = ["bytes", "kB", "MB", "GB"];
  let at = 0;
  let left = size;
  while (left >= 1000 && at < units.length - 1) {
    left /= 1000;
    at += 1;
  }
  return `${at === 0 ? left : left.toPrecision(3)} ${units[at]}`;
}
