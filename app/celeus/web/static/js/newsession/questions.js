/* What a file leaves open: its questions, and what is answered; the server shows them. */

import { announce, byId } from "../dom.js";
import { counted } from "../format.js";

/** Questions that several values may answer. */
const SEVERAL = ["missing"];
/** Questions about numbers, and the roles of columns that have them. */
const OF_NUMBERS = ["better", "scale", "missing"];
const NUMBERS = ["score", "surrogate", "known"];

/** The questions of a file. */
export class Questions {
  /**
   * `changed` is called when somebody answers one, `placed` when the answer is the role of a column.
   *
   * @param {() => void} changed
   * @param {(column: string, role: string) => void} placed
   */
  constructor(changed, placed) {
    /** @type {Map<string, Question>} */
    this.asked = new Map();
    /** @type {Map<string, string[]>} */
    this.answers = new Map();
    byId("file-read").addEventListener("change", ({ target }) => {
      if (!(target instanceof HTMLInputElement) || target.dataset.key === undefined) return;
      const { key, before } = target.dataset;
      const { name, column } = /** @type {Question} */ (this.asked.get(key));
      if (name === "mapping") return placed(column ?? "", target.value);
      if (before !== undefined) this.write(key, before, target.value.trim());
      else this.take(key, target.value, SEVERAL.includes(name));
      return changed();
    });
  }

  /** The number of questions without an answer. */
  get open() {
    return [...this.asked.keys()].filter((key) => !this.answers.get(key)?.length).length;
  }

  /** What is asked and answered, to be shown. */
  get shown() {
    return [...this.asked].map(([key, question]) => ({
      key,
      question,
      answers: this.answers.get(key) ?? [],
    }));
  }

  /** Another file: nothing is asked of it yet. */
  forget() {
    this.asked.clear();
    this.answers.clear();
  }

  /**
   * Ask these, too; what is answered stays.
   *
   * @param {Question[]} questions
   * @param {Record<string, string>} roles
   */
  ask(questions, roles) {
    for (const question of questions) {
      // Roles are given in the table of columns, where nobody can give one that stands there
      if (question.name === "mapping" && isHidden(question, roles)) continue;
      const key = JSON.stringify([question.name, question.column]);
      const before = this.asked.get(key);
      if (before !== undefined && SEVERAL.includes(question.name)) {
        // What is chosen already is not among the choices that are left
        const known = before.choices.map((choice) => choice.value);
        const more = question.choices.filter((choice) => !known.includes(choice.value));
        if (more.length === 0) continue;
        question.choices = [...before.choices, ...more];
      } else this.answers.delete(key);
      this.asked.set(key, question);
    }
    if (this.asked.size > 0 && questions.length > 0)
      announce(`${counted(questions.length, "question")} to answer. ${plain(questions[0].text)}`);
  }

  /** Nothing else is asked; which column is judged stays open where roles were given instead. */
  settle() {
    for (const [key, question] of this.asked)
      if (!this.answers.get(key)?.length && question.name !== "answer") this.asked.delete(key);
  }

  /**
   * Take back what was asked of columns that have another role now.
   *
   * @param {string[]} columns
   * @param {boolean} judged whether the new roles say what is judged
   */
  withdraw(columns, judged) {
    for (const [key, { name, column }] of this.asked) {
      const stale =
        name === "answer" ? judged || this.answers.has(key) : columns.includes(column ?? "");
      if (!stale) continue;
      this.asked.delete(key);
      this.answers.delete(key);
    }
  }

  /**
   * What is answered, as members of the query; of a column that has numbers no longer, nothing.
   *
   * @param {URLSearchParams} query
   * @param {Record<string, string>} roles
   */
  give(query, roles) {
    for (const [key, values] of this.answers) {
      const [name, column] = JSON.parse(key);
      if (OF_NUMBERS.includes(name) && !NUMBERS.includes(roles[column] ?? "score")) continue;
      for (const value of values) query.append(name, value);
    }
  }

  /** What is chosen on the page as it is answered. */
  choose() {
    /** @type {NodeListOf<HTMLInputElement>} */
    const inputs = byId("file-read").querySelectorAll("input[data-key]:not([data-before])");
    for (const input of inputs)
      input.checked = this.answers.get(input.dataset.key ?? "")?.includes(input.value) ?? false;
  }

  /** The focus to the first open question, unless somebody is at work elsewhere in the form. */
  lead() {
    const { activeElement } = document;
    if (activeElement !== document.body && activeElement?.id !== "file") return;
    const first = [...this.asked.keys()].find((key) => !this.answers.get(key)?.length);
    const field = document.getElementById(`question-${first}`);
    field?.querySelector("input")?.focus();
    field?.scrollIntoView({ block: "nearest" });
  }

  /**
   * An answer in words of one's own, in place of those that are listed.
   *
   * @param {string} key
   * @param {string} before
   * @param {string} value
   */
  write(key, before, value) {
    if (value === "") this.answers.delete(key);
    else this.answers.set(key, [`${before}${value}`]);
    this.choose();
  }

  /**
   * @param {string} key
   * @param {string} value
   * @param {boolean} several
   */
  take(key, value, several) {
    const before = several ? (this.answers.get(key) ?? []) : [];
    const after = before.filter((one) => one !== value);
    this.answers.set(key, before.includes(value) ? after : [...before, value]);
  }
}

/**
 * Whether a question is about a column that judges would not see.
 *
 * @param {Question} question
 * @param {Record<string, string>} roles
 */
export function isHidden({ column }, roles) {
  return (roles[column ?? ""] ?? "hidden") === "hidden";
}

/** @param {string} text */
function plain(text) {
  return text.replaceAll("`", "");
}
