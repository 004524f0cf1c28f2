/* A file that becomes a pool: dropped or chosen, looked at, then made. */

import { api, isAborted, messageOf, patiently, Problem } from "../api.js";
import { announce, byId, el, fill, given, only } from "../dom.js";
import { counted } from "../format.js";
import { show } from "../live.js";
import {
  blame,
  bodyOf,
  clear,
  goToWrong,
  keyring,
  picked,
  placeOf,
  shownFields,
  text,
  Unusable,
} from "./fields.js";
import { Levels } from "./judging.js";
import { Looks } from "./looks.js";
import { Mapping } from "./mapping.js";
import { RETRIES } from "./planner.js";
import { isHidden, Questions } from "./questions.js";
import { upload } from "./upload.js";

/** @type {Record<string, string>} */
const MEDIA = {
  csv: "text/csv",
  tsv: "text/csv",
  txt: "text/csv",
  jsonl: "application/x-ndjson",
  ndjson: "application/x-ndjson",
  parquet: "application/vnd.apache.parquet",
  pq: "application/vnd.apache.parquet",
};
const OTHER = "application/octet-stream";
const WHOLE_BYTES = 16 << 20;
const SLICE_BYTES = 1 << 20;
const SHOWN_ROWS = 8;
const LINE_BREAK = 10;
const SETTLED_MS = 500;
const TYPED = [
  "loss-lower",
  "loss-upper",
  "system_a",
  "system_b",
  "normalisation",
  "score_name",
  "score_better",
];
const PEEKED_BYTES = 1 << 16;
/** A member, or a column, that only rows of two systems have. */
const TWO_SYSTEMS =
  /"[ab]"\s*:\s*\{\s*"(answer|prediction|payload|surrogate)"|\b(answer|prediction|payload|surrogate|response|output|completion|antwort)_?[ab12]\b|\bchosen\b.{1,5000}\brejected\b/is;
const PLACES = {
  name: "pool-name",
  session: "based_on",
  answer: "earlier_answer",
  system: "earlier_system",
};
/** What is said of an earlier version, by the names of the query. */
const EARLIER = ["based_on", "labels_seen", "earlier_answer", "earlier_system"];
const SCORE_PLACES = { name: "score_name", better: "score_better" };

/** @typedef {(body: unknown, signal: AbortSignal) => Promise<Plan | TablePlan>} Ask */

/**
 * What is told of a file: the pool that it would be, with the way to ask for its plans; that this is
 * not so any longer; and the pool that it has become.
 *
 * @typedef {object} Heard
 * @property {(pool: Pool, ask: Ask) => void} looked
 * @property {() => void} unlooked
 * @property {(pool: Pool) => void} made
 */

/** The part of the form for a file. */
export class PoolFile {
  /** @param {Heard} heard */
  constructor(heard) {
    this.heard = heard;
    /** @type {File | null} */
    this.file = null;
    this.media = "";
    /** @type {AbortController | null} */
    this.under = null;
    /** @type {number | undefined} */
    this.settling = undefined;
    /** @type {PoolFileAnswer | null} */
    this.found = null;
    this.whole = false;
    this.supposed = false;
    this.creating = false;
    this.keyOf = keyring();
    /** @type {Record<string, unknown>} what the file was read as */
    this.read = {};
    /** @type {AbortController | null} */
    this.drawing = null;
    this.mapping = new Mapping((columns, judged) => {
      this.questions.withdraw(columns, judged);
      this.checkAgain();
    });
    this.questions = new Questions(
      () => this.checkAgain(),
      (column, role) => this.mapping.take(column, role),
    );
    this.looks = new Looks();
    this.levels = new Levels(() => this.checkSoon());
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
    for (const subject of document.querySelectorAll("input[name=subject]"))
      subject.addEventListener("change", () => {
        this.supposed = false;
        // The same answer has another meaning of two systems
        this.questions.forget();
        byId("questions").hidden = true;
        this.about(picked("subject"));
      });
    for (const kind of document.querySelectorAll("input[name=kind]"))
      kind.addEventListener("change", () => {
        suitKind();
        this.checkAgain();
      });
    for (const id of [...TYPED, ...EARLIER])
      byId(id).addEventListener("input", () => this.checkSoon());
    byId("cancel").addEventListener("click", () =>
      this.under?.abort(new DOMException("cancelled", "AbortError")),
    );
    byId("skip").addEventListener("change", () => this.allow());
    byId("make").addEventListener("click", () => this.make());
  }

  /**
   * Look at the first of these files.
   *
   * @param {File[]} files
   */
  take(files) {
    const file = files[0];
    if (file === undefined) return;
    this.forget();
    const media = MEDIA[file.name.replace(/^.*\./s, "").toLowerCase()] ?? OTHER;
    if (files.length > 1)
      return this.refuse("One file at a time, please: a pool is created from one file.");
    if (file.size === 0) return this.refuse(`“${file.name}” is empty.`);
    if (file.size > this.limit) {
      return this.refuse(
        `“${file.name}” is ${bytes(file.size)}; this service accepts at most ${bytes(this.limit)} at once.`,
      );
    }
    this.file = file;
    this.media = media;
    byId("file-name").textContent = file.name;
    byId("file-size").textContent = bytes(file.size);
    byId("pool-name", HTMLInputElement).value =
      file.name.replace(/(\.[^.]*)(\.gz)?$/i, "").slice(0, 200) || file.name;
    byId("file-details").hidden = false;
    return this.begin(file);
  }

  /** @param {File} file */
  async begin(file) {
    const ends = [file.slice(0, PEEKED_BYTES), file.slice(-PEEKED_BYTES)];
    const texts = await Promise.all(ends.map((end) => end.text()));
    if (this.file !== file) return;
    this.supposed = TWO_SYSTEMS.test(texts.join(""));
    this.about(this.supposed ? "two" : "one");
  }

  /**
   * The rows hold answers of two systems, or of one.
   *
   * @param {string} subject
   */
  about(subject) {
    only(document, `input[name=subject][value=${subject}]`, HTMLInputElement).checked = true;
    const kind = only(document, "input[name=kind]:checked");
    if (![undefined, subject].includes(kind.closest("label")?.dataset.for))
      only(document, "input[name=kind][value=zero_one]", HTMLInputElement).checked = true;
    suitKind();
    this.checkAgain();
  }

  forget() {
    this.under?.abort(new DOMException("another file", "AbortError"));
    this.file = null;
    fill(byId("file-problem"));
    for (const id of ["file-details", "questions", "columns"]) byId(id).hidden = true;
    byId("columns", HTMLDetailsElement).open = false;
    this.drawing?.abort();
    this.read = {};
    this.mapping.forget();
    this.questions.forget();
    this.looks.forget();
    this.levels.forget();
    this.unchecked();
  }

  unchecked() {
    this.found = null;
    this.heard.unlooked();
    byId("checked").hidden = true;
    byId("skip-choice").hidden = true;
    byId("skip", HTMLInputElement).checked = false;
    byId("make", HTMLButtonElement).disabled = true;
  }

  /** @param {string} message */
  refuse(message) {
    fill(
      byId("file-problem"),
      el("p", { class: "notice warning" }, message, " Nothing was stored."),
    );
  }

  checkSoon() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.checkAgain(), SETTLED_MS);
  }

  /** Have the service read the file as this kind of loss, and keep nothing. */
  async checkAgain() {
    if (this.file === null) return undefined;
    // A look would give up the pool that is being created
    if (this.creating) return this.checkSoon();
    clear(byId("file-details"));
    fill(byId("file-problem"));
    this.unchecked();
    // With an earlier version, the answer of one is enough
    if (picked("subject") === "two" && text("based_on") === "" && this.mapping.isHalf) {
      this.looks.forget();
      return this.hint("Choose the answer of the other system in the table below, too.");
    }
    const file = this.file;
    const part = await this.part(file);
    if (this.file !== file) return undefined;
    let query;
    try {
      query = this.query({ name: "checked", dry_run: "true", preview: String(SHOWN_ROWS) });
      // Somebody is still naming them
      if (this.levels.named.length === 1) query.delete("levels");
    } catch (wrong) {
      return this.tell(wrong);
    }
    const found = await this.send(part, query, "Checking the file");
    if (found === null || this.file !== file) return undefined;
    if (this.supposed && found.items === 0) {
      // What looked like two systems is none
      this.supposed = false;
      return this.about("one");
    }
    this.found = found;
    this.whole = part === file;
    this.show(found);
    if (this.whole && found.items > 0)
      this.heard.looked(found.pool, (body, signal) => this.planned(file, query, body, signal));
    return undefined;
  }

  /**
   * The plan for the pool that the file would be: it is read once more, and not kept either.
   *
   * @param {File} file
   * @param {URLSearchParams} query
   * @param {unknown} body
   * @param {AbortSignal} signal
   */
  async planned(file, query, body, signal) {
    const asked = new URLSearchParams(query);
    asked.set("planning", JSON.stringify(body));
    asked.set("preview", "0");
    const options = { told: () => {}, signal, headers: {} };
    const { plan } = await patiently(RETRIES, signal, () =>
      upload(`/v1/pool-files?${asked}`, file, this.media, options),
    );
    return plan;
  }

  /**
   * A large text is looked at by its first part: what is wrong further on is told when it is made.
   *
   * @param {File} file
   */
  async part(file) {
    if (![MEDIA.csv, MEDIA.jsonl].includes(this.media) || file.size <= WHOLE_BYTES) return file;
    const start = new Uint8Array(await file.slice(0, SLICE_BYTES).arrayBuffer());
    const end = start.lastIndexOf(LINE_BREAK);
    return end > 0 ? file.slice(0, end + 1) : file;
  }

  /** @param {Record<string, string>} more */
  query(more) {
    const asked = bodyOf(shownFields(["loss-kind", "score", "names", "earlier"]));
    if (asked.based_on === undefined) for (const name of EARLIER) delete asked[name];
    if (asked.score_name === undefined) delete asked.score_better;
    const query = new URLSearchParams({ ...asked, ...more });
    const mapping = this.mapping.given();
    if (mapping !== null) query.set("mapping", mapping);
    this.questions.give(query, this.mapping.roles);
    const levels = this.levels.given();
    if (levels.length > 0) query.set("levels", JSON.stringify(levels));
    return query;
  }

  /**
   * The answer, or null where there is none and it has been said why.
   *
   * @param {Blob} part
   * @param {URLSearchParams} query
   * @param {string} doing
   * @param {Record<string, string>} headers
   * @returns {Promise<PoolFileAnswer | null>}
   */
  async send(part, query, doing, headers = {}) {
    this.under?.abort(new DOMException("begun anew", "AbortError"));
    const under = new AbortController();
    this.under = under;
    progress(doing, 0);
    try {
      const told = (/** @type {number} */ share) =>
        progress(
          share < 1 ? `${doing}: ${Math.round(100 * share)} % sent` : "Sent; reading its rows",
          share,
        );
      return await upload(`/v1/pool-files?${query}`, part, this.media, {
        told,
        signal: under.signal,
        headers,
      });
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

  /** @param {unknown} error */
  tell(error) {
    if (error instanceof Unusable) return blame(error.id, error.message);
    if (isAborted(error)) {
      announce("Cancelled");
      return this.refuse("Cancelled.");
    }
    if (!(error instanceof Problem)) throw error;
    if (error.code === "needs_answer") return this.ask(error);
    const own = error.field?.startsWith("score.") ? SCORE_PLACES : PLACES;
    const place = this.levels.placeOf(error.field) ?? placeOf(error.field, own);
    if (place !== null && byId("file-details").contains(byId(place))) {
      blame(place, said(error));
      return goToWrong(byId("file-details"));
    }
    if (error.errors.length > 0) {
      const { errors: faults, told } = error;
      this.read = { ...this.read, rows: null, faults, total: told.total_errors ?? faults.length };
      return this.draw();
    }
    return this.refuse(`${said(error)}${error.passing ? " Try again in a moment." : ""}`);
  }

  /**
   * What the file leaves open, to be answered; and its columns, to be given another role.
   *
   * @param {Problem} problem
   */
  async ask({ told }) {
    const { format, read_as: readAs } = told;
    const [questions, columns] = [told.questions ?? [], told.columns ?? []];
    if (columns.length > 0) {
      this.mapping.roles = Object.fromEntries(columns.map(({ name, role }) => [name, role]));
      this.read = { format, read_as: readAs ?? [], columns };
    }
    this.read = { ...this.read, rows: null, faults: [] };
    const { roles } = this.mapping;
    this.questions.ask(questions, roles);
    this.looks.forget();
    const mapped = questions.find((one) => one.name === "mapping" && isHidden(one, roles));
    if (mapped !== undefined)
      this.hint(
        hasNames()
          ? "Which columns hold the answers of the two systems? Choose “Answer of A” and “Answer of B” in the table below."
          : "What do judges see of a row? Choose what every column is in the table below.",
      );
    if (!(await this.draw())) return;
    if (columns.length > 0) byId("columns", HTMLDetailsElement).open = true;
    this.questions.lead();
    if (mapped !== undefined) this.mapping.selectOf(mapped.column ?? undefined)?.focus();
  }

  /** @param {string} words */
  hint(words) {
    fill(byId("file-problem"), el("p", { class: "notice warning" }, words));
  }

  /** @param {PoolFileAnswer} found */
  async show(found) {
    const { items, skipped, numeric, classes, columns } = found;
    const asItems = found.mapping_source === "items";
    this.mapping.roles = { ...found.mapping };
    this.questions.settle();
    this.looks.show(found);
    this.read = {
      format: found.format,
      read_as: found.read_as,
      columns,
      examples: found.examples,
      source: this.mapping.said ? "given" : found.mapping_source,
      rows: {
        items,
        skipped,
        whole: this.whole,
        numeric,
        classes,
        preview: asItems ? found.preview : [],
      },
      faults: found.errors,
      total: skipped,
    };
    byId("skip-choice").hidden = skipped === 0 || items === 0;
    byId("skip-words").textContent =
      `Leave the ${counted(skipped, "bad row")} out and create the pool from the others`;
    this.allow();
    if (await this.draw()) announce(byId("checked-line").textContent ?? "");
  }

  /**
   * Show what the file is read as; false where that is out of date before it is there.
   *
   * @returns {Promise<boolean>}
   */
  async draw() {
    this.drawing?.abort();
    const drawing = new AbortController();
    this.drawing = drawing;
    const body = {
      ...this.read,
      lines: this.isText(),
      roles: this.mapping.roles,
      questions: this.questions.shown,
    };
    try {
      const options = { raw: true, retry: RETRIES, signal: drawing.signal };
      const answer = await api("POST", "/sessions/new/file", body, options);
      const page = await answer.text();
      if (drawing.signal.aborted) return false;
      show("file-read", page);
      show("checked", page);
    } catch (problem) {
      if (!drawing.signal.aborted) this.refuse(messageOf(problem));
      return false;
    }
    this.mapping.choose();
    this.questions.choose();
    return true;
  }

  isText() {
    const format = this.found?.format ?? null;
    return [null, "csv", "jsonl"].includes(format) && this.media !== MEDIA.parquet;
  }

  allow() {
    const found = this.found;
    byId("make", HTMLButtonElement).disabled =
      found === null ||
      found.items === 0 ||
      this.questions.open > 0 ||
      (found.skipped > 0 && !byId("skip", HTMLInputElement).checked);
  }

  async make() {
    clear(byId("file-details"));
    const name = text("pool-name");
    if (name === "") {
      blame("pool-name", "The pool needs a name.");
      return goToWrong(byId("file-details"));
    }
    const skip = byId("skip", HTMLInputElement).checked;
    let query;
    try {
      query = this.query({ name, on_error: skip ? "skip" : "fail" });
    } catch (wrong) {
      return this.tell(wrong);
    }
    byId("make", HTMLButtonElement).disabled = true;
    // What was shown is what is made, whatever the rest of the file would suggest
    if (this.found !== null && this.found.mapping_source !== "items")
      query.set("mapping", this.mapping.text());
    const { file } = this;
    if (file === null) return undefined;
    const { size, lastModified } = file;
    const headers = {
      "Idempotency-Key": this.keyOf([String(query), file.name, size, lastModified]),
    };
    byId("loss-kind", HTMLFieldSetElement).disabled = true;
    this.creating = true;
    const made = await this.send(file, query, "Creating the pool", headers);
    this.creating = false;
    byId("loss-kind", HTMLFieldSetElement).disabled = false;
    if (made === null) return this.allow();
    const { pool } = made;
    this.heard.made(pool);
    return this.forget();
  }
}

function hasNames() {
  return picked("subject") === "two" && picked("kind") !== "difference";
}

/** Another kind of loss begins with limits and a score of its own. */
function suitKind() {
  const small = ["preference", "difference"].includes(picked("kind"));
  byId("loss-upper", HTMLInputElement).value = small ? "1" : "5";
  byId("score_name", HTMLInputElement).placeholder =
    picked("kind") === "zero_one" ? "error rate" : "mean loss";
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

/** @param {unknown} value */
function shown(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** @param {Problem} problem */
function said(problem) {
  const rule = problem.rule === null ? "" : ` It must be ${problem.rule}.`;
  const value =
    problem.field !== null && problem.value !== null
      ? ` Found in ${problem.field}: ${shown(problem.value)}.`
      : "";
  return `${problem.detail}${rule}${value}`;
}

/** @param {number} size */
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
