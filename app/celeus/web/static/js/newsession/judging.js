/* How judges judge: the instructions beside the items, and the levels that have names. */

import { byId, cloned, fill, only } from "../dom.js";
import { markdown } from "../item/markdown.js";
import { blame, fieldValue, isShown, numberIn, picked, text, Unusable } from "./fields.js";

const HIGHEST_KEY = 9;
const MOST = 20;
/** What a score is called where levels are named first: they mostly say how good something is. */
const GOOD = { zero_one: "accuracy", bounded: "quality" };

/** @typedef {{ name: string, grade: number, help: string | null }} NamedLevel */

/** Show what judges will be told: the instructions of the session, or those of its pool. */
export function previewInstructions() {
  const own = text("instructions") === "" ? null : fieldValue("instructions");
  const shown = own ?? byId("chosen").dataset.instructions ?? "";
  byId("instructions-look").hidden = shown === "";
  byId("instructions-whose").textContent =
    own === null ? "As judges will see them: those of the pool" : "As judges will see them";
  fill(byId("instructions-shown"), shown === "" ? null : markdown(shown));
}

/** The rows in which levels are named; `changed` is called when one of them does. */
export class Levels {
  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    this.made = 0;
    byId("add-level").addEventListener("click", () => this.add());
    byId("level-rows").addEventListener("input", changed);
    byId("level-rows").addEventListener("click", (event) => this.remove(event));
    byId("score_better").addEventListener("input", () => this.tell());
    this.tell();
  }

  forget() {
    fill(byId("level-rows"));
    this.tell();
  }

  /** The rows that have a name, in their order. */
  get named() {
    if (!isShown(byId("levels"))) return [];
    return this.rows.filter((row) => text(`level-name-${row}`) !== "");
  }

  get rows() {
    return [...byId("level-rows").children].map((row) =>
      row instanceof HTMLElement ? (row.dataset.row ?? "") : "",
    );
  }

  /**
   * The levels, as the service takes them.
   *
   * @returns {NamedLevel[]}
   */
  given() {
    const found = this.named.map((row) => ({
      name: text(`level-name-${row}`),
      grade: numberIn(`level-grade-${row}`),
      help: text(`level-help-${row}`) || null,
    }));
    if (found.length > 0 && text("score_name") === "")
      throw new Unusable("score_name", "Levels are grades of a score: it needs a name.");
    return found;
  }

  /**
   * The field that a refusal names, as `levels.2.grade`.
   *
   * @param {string | null} field
   */
  placeOf(field) {
    const [, at, member] = /^levels\.(\d+)\.(name|grade|help)$/.exec(field ?? "") ?? [];
    const row = at === undefined ? undefined : this.named[Number(at)];
    return row === undefined ? null : `level-${member}-${row}`;
  }

  add() {
    const first = this.rows.length === 0;
    const begun = first ? begunGrades() : [""];
    if (begun === null) return;
    if (first) this.nameScore();
    const made = begun.map((grade) => this.row(grade));
    byId("level-rows").append(...made);
    this.tell();
    const [grade, name] = made[0].querySelectorAll("input");
    (first ? name : grade).focus();
    this.changed();
  }

  /** Levels are of a score, which has a name and says which end is good. */
  nameScore() {
    const name = byId("score_name", HTMLInputElement);
    if (name.value.trim() !== "") return;
    name.value = picked("kind") === "zero_one" ? GOOD.zero_one : GOOD.bounded;
    byId("score_better", HTMLSelectElement).value = "higher";
  }

  tell() {
    const count = this.rows.length;
    byId("add-level").textContent = count === 0 ? "Name the levels" : "Add a level";
    byId("add-level", HTMLButtonElement).disabled = count >= MOST;
    byId("levels-better").textContent =
      count === 0
        ? ""
        : `${fieldValue("score_better") === "higher" ? "Higher" : "Lower"} is better.`;
  }

  /** @param {string} grade */
  row(grade) {
    this.made += 1;
    const row = only(cloned("level-row"), "li");
    row.dataset.row = String(this.made);
    for (const field of row.querySelectorAll("input")) {
      field.id = `level-${field.dataset.member}-${this.made}`;
      field.previousElementSibling?.setAttribute("for", field.id);
      if (field.dataset.member === "grade") field.value = grade;
    }
    only(row, "button").setAttribute("aria-label", `Remove the level ${grade}`);
    return row;
  }

  /** @param {Event} event */
  remove({ target }) {
    if (!(target instanceof HTMLButtonElement)) return;
    target.closest("li")?.remove();
    this.tell();
    byId("add-level").focus();
    this.changed();
  }
}

/** The values to begin with: every grade that has a key, else the two ends; null without ends. */
function begunGrades() {
  const ends = picked("kind") === "zero_one" ? [0, 1] : limits();
  if (ends === null) return null;
  const [low, high] = ends;
  const keyed = Number.isInteger(low) && Number.isInteger(high) && 0 <= low && high <= HIGHEST_KEY;
  if (!keyed || high < low) return [String(low), String(high)];
  return Array.from({ length: high - low + 1 }, (_, at) => String(low + at));
}

/** The ends of the scale; null, with the wrong one in focus, where they are no numbers. */
function limits() {
  try {
    return [numberIn("loss-lower"), numberIn("loss-upper")];
  } catch (wrong) {
    if (!(wrong instanceof Unusable)) throw wrong;
    blame(wrong.id, wrong.message);
    byId(wrong.id).focus();
    return null;
  }
}
