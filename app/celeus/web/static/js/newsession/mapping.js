/* What the columns of a file mean: a table of them, each with its role to choose. */

import { byId, el, fill } from "../dom.js";
import { readWords, ROLES } from "../intake.js";

/** Roles that several columns may have. */
const MANY = ["payload", "group", "hidden"];
const SOURCES = {
  items: "",
  given: "As you said.",
  remembered: "As for the last pool made of a file with these columns.",
  guessed: "Taken from the names and values of the columns: change what is wrong.",
  log: "As the format says.",
};

/** Roles that say what is judged. */
const JUDGED = ["answer", "answer_a", "answer_b", "messages"];

/** The table of columns; `changed` is called with those that somebody gave another role. */
export class Mapping {
  /** @param {(columns: string[], judged: boolean) => void} changed */
  constructor(changed) {
    this.changed = changed;
    /** @type {Record<string, string>} */
    this.roles = {};
    this.said = false;
    this.shown = "";
  }

  /** Another file: nothing is said of its columns. */
  forget() {
    this.roles = {};
    this.said = false;
    this.shown = "";
    byId("columns").hidden = true;
    byId("columns", HTMLDetailsElement).open = false;
  }

  /**
   * What to send: what somebody said; nothing where that is left to the service.
   *
   * @returns {string | null}
   */
  given() {
    return this.said ? this.text() : null;
  }

  /** True where somebody has said which column is the answer of one of two systems only. */
  get isHalf() {
    const roles = Object.values(this.roles);
    return this.said && roles.includes("answer_a") !== roles.includes("answer_b");
  }

  /** The roles as they are sent; what is not used is left out. */
  text() {
    const used = Object.entries(this.roles).filter(([, role]) => role !== "hidden");
    return JSON.stringify(Object.fromEntries(used));
  }

  /**
   * The column that has a role, for what is wrong with it.
   *
   * @param {string} role
   */
  columnOf(role) {
    const roles = role === "surrogate" ? ["surrogate", "score"] : [role];
    return Object.keys(this.roles).find((name) => roles.includes(this.roles[name])) ?? null;
  }

  /**
   * The columns of a file that leaves something open.
   *
   * @param {PlacedColumn[]} columns
   * @param {string | null | undefined} format
   * @param {string[]} readAs
   */
  showPlaced(columns, format, readAs) {
    const names = columns.map((column) => column.name);
    byId("columns").hidden = false;
    this.roles = Object.fromEntries(columns.map((column) => [column.name, column.role]));
    byId("columns-line").textContent = "What its columns mean";
    byId("columns", HTMLDetailsElement).open = true;
    byId("columns-told").textContent = `${readWords(format, readAs, names.length)}.`;
    this.draw(columns, {});
  }

  /**
   * @param {PoolFileAnswer} found
   * @param {string} rows how many there are, in words
   */
  show(found, rows) {
    const names = Object.keys(found.mapping);
    byId("columns").hidden = names.length === 0;
    if (names.length === 0) return;
    this.roles = { ...found.mapping };
    const used = Object.values(this.roles).filter((role) => role !== "hidden");
    const roles = [...new Set(used)].map((role) => (ROLES[role] ?? role).toLowerCase());
    byId("columns-line").textContent = `${rows}: ${roles.join(", ")}.`;
    const words = readWords(found.format, found.read_as, names.length);
    byId("columns-told").textContent =
      `${words}. ${this.said ? SOURCES.given : SOURCES[found.mapping_source]}`;
    this.draw(found.columns, found.examples);
  }

  /**
   * The table of these columns; the focus stays where it is.
   *
   * @param {PlacedColumn[]} columns
   * @param {Record<string, string[]>} examples
   */
  draw(columns, examples) {
    const table = byId("columns-table");
    const signature = JSON.stringify([columns.map((column) => column.name), examples]);
    if (this.shown !== signature) {
      const focused = table.contains(document.activeElement) ? document.activeElement : null;
      fill(table, this.table(columns, examples));
      if (focused instanceof HTMLSelectElement) this.selectOf(focused.dataset.column)?.focus();
    }
    this.shown = signature;
    this.choose();
    for (const [at, reason] of table.querySelectorAll(".why").entries())
      reason.textContent = `Why: ${columns[at].why}`;
  }

  /** @param {string | undefined} column */
  selectOf(column) {
    const selects = [...byId("columns-table").querySelectorAll("select")];
    return selects.find((select) => select.dataset.column === column);
  }

  /** The roles into the choices that are there. */
  choose() {
    for (const select of byId("columns-table").querySelectorAll("select"))
      select.value = this.roles[select.dataset.column ?? ""];
  }

  /**
   * @param {PlacedColumn[]} columns
   * @param {Record<string, string[]>} examples
   */
  table(columns, examples) {
    const names = columns.map((column) => column.name);
    const heads = names.some((name) => name in examples)
      ? ["Column", "Its values", "What it is"]
      : ["Column", "What it is"];
    return el(
      "table",
      { class: "table roles" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          heads.map((name) => el("th", { scope: "col" }, name)),
        ),
      ),
      el(
        "tbody",
        {},
        names.map((name) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, el("bdi", {}, name)),
            heads.length === 2
              ? null
              : el(
                  "td",
                  {},
                  examples[name].map((one) => el("span", { class: "example" }, el("bdi", {}, one))),
                ),
            el("td", {}, this.select(name), el("small", { class: "why quiet-text" })),
          ),
        ),
      ),
    );
  }

  /** @param {string} column */
  select(column) {
    const role = this.roles[column];
    const select = el(
      "select",
      { "aria-label": `What ${column} is`, dataset: { column } },
      Object.entries(ROLES).map(([value, name]) =>
        el("option", { value, selected: value === role }, name),
      ),
    );
    select.addEventListener("change", () => this.take(column, select.value));
    return select;
  }

  /**
   * Another column that had a role for one is not used any more.
   *
   * @param {string} column
   * @param {string} role
   */
  take(column, role) {
    const single = ["surrogate", "score"].includes(role) ? ["surrogate", "score"] : [role];
    const others = Object.keys(this.roles).filter(
      (other) => other !== column && !MANY.includes(role) && single.includes(this.roles[other]),
    );
    for (const other of others) this.roles[other] = "hidden";
    this.roles[column] = role;
    this.said = true;
    this.choose();
    this.changed([column, ...others], JUDGED.includes(role));
  }
}
