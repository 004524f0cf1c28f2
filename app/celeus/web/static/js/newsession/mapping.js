/* What the columns of a file mean: their roles, of which the server shows a table. */

import { byId } from "../dom.js";

/** Roles that several columns may have. */
const MANY = ["payload", "group", "hidden"];
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
    byId("file-read").addEventListener("change", ({ target }) => {
      if (target instanceof HTMLSelectElement) this.take(target.dataset.column ?? "", target.value);
    });
  }

  /** Another file: nothing is said of its columns. */
  forget() {
    this.roles = {};
    this.said = false;
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

  /** @param {string | undefined} column */
  selectOf(column) {
    return this.selects.find((select) => select.dataset.column === column);
  }

  get selects() {
    return [...byId("columns-table").querySelectorAll("select")];
  }

  /** The roles into the choices that are there. */
  choose() {
    for (const select of this.selects) select.value = this.roles[select.dataset.column ?? ""];
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
