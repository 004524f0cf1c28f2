/* What the columns of a file mean: a table of them, each with its role to choose. */

import { byId, el, fill } from "../dom.js";
import { counted } from "../format.js";

/** What each role is called, in the order of the choice. */
const ROLES = {
  id: "Id",
  question: "Question",
  answer: "Answer",
  reference: "Reference",
  messages: "Chat",
  image: "Picture",
  text: "Text beside it",
  choices: "Choices",
  instructions: "Instructions",
  answer_a: "Answer of A",
  answer_b: "Answer of B",
  surrogate: "Guess of the loss",
  score: "Guess of the score",
  prediction: "Predicted class",
  weight: "Weight",
  group: "Group",
  payload: "Shown, folded",
  known: "Known verdict",
  hidden: "Hidden",
};
/** Roles that several columns may have. */
const MANY = ["payload", "group", "hidden"];
const FORMATS = { csv: "CSV", json: "JSON", jsonl: "JSON Lines", parquet: "Parquet" };
const SOURCES = {
  items: "",
  given: "As you said.",
  remembered: "As when a pool was last made of these columns.",
  guessed: "Guessed from names and values: change what is wrong.",
  log: "As the log has them.",
};

/** The table of columns; `changed` is called when somebody gives a column another role. */
export class Mapping {
  /** @param {() => void} changed */
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
  }

  /**
   * What to send: what somebody said; nothing where that is left to the service.
   *
   * @returns {string | null}
   */
  given() {
    return this.said ? this.text() : null;
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
   */
  showPlaced(columns) {
    const names = columns.map((column) => column.name);
    byId("columns").hidden = false;
    this.roles = Object.fromEntries(columns.map((column) => [column.name, column.role]));
    byId("columns-told").textContent = `${counted(names.length, "column")}.`;
    const examples = Object.fromEntries(columns.map((column) => [column.name, [column.why]]));
    fill(byId("columns-table"), this.table(names, examples));
    this.shown = "";
  }

  /** @param {PoolFileAnswer} found */
  show(found) {
    const names = Object.keys(found.mapping);
    byId("columns").hidden = names.length === 0;
    if (names.length === 0) return;
    this.roles = { ...found.mapping };
    const read = [FORMATS[/** @type {"csv"} */ (found.format)] ?? "", ...found.read_as];
    byId("columns-told").textContent =
      `${read.filter(Boolean).join(", ")}; ${counted(names.length, "column")}. ${this.said ? SOURCES.given : SOURCES[found.mapping_source]}`;
    const signature = JSON.stringify(found.examples);
    if (this.shown === signature) this.choose();
    else fill(byId("columns-table"), this.table(names, found.examples));
    this.shown = signature;
  }

  /** The roles into the choices that are there: the focus stays where it is. */
  choose() {
    for (const select of byId("columns-table").querySelectorAll("select"))
      select.value = this.roles[select.dataset.column ?? ""];
  }

  /**
   * @param {string[]} names
   * @param {Record<string, string[]>} examples
   */
  table(names, examples) {
    return el(
      "table",
      { class: "table roles" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["Column", "Its values", "What it is"].map((name) => el("th", { scope: "col" }, name)),
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
            el(
              "td",
              {},
              examples[name].map((one) => el("span", { class: "example" }, el("bdi", {}, one))),
            ),
            el("td", {}, this.select(name)),
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
    for (const other of Object.keys(this.roles)) {
      if (other !== column && !MANY.includes(role) && single.includes(this.roles[other]))
        this.roles[other] = "hidden";
    }
    this.roles[column] = role;
    this.said = true;
    this.choose();
    this.changed();
  }
}
