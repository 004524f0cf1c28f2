/* What a file leaves open: its questions, each with its choices and a row in which it shows. */

import { announce, byId, el, fill } from "../dom.js";
import { counted } from "../format.js";
import { ROLES } from "../intake.js";

/** Questions that several values may answer. */
const SEVERAL = ["missing"];
/** Questions about numbers, and the roles of columns that have them. */
const OF_NUMBERS = ["better", "scale", "missing"];
const NUMBERS = ["score", "surrogate", "known"];
/** Questions with other answers than those that are listed. */
const OPEN = ["scale"];

/** The questions of a file. */
export class Questions {
  /**
   * `changed` is called when somebody answers one, `placed` when the answer is the role of a column.
   *
   * @param {() => void} changed
   * @param {(column: string, role: string) => void} placed
   */
  constructor(changed, placed) {
    this.changed = changed;
    this.placed = placed;
    /** @type {Map<string, Question>} */
    this.asked = new Map();
    /** @type {Map<string, string[]>} */
    this.answers = new Map();
    /** @type {Map<string, HTMLElement>} */
    this.fields = new Map();
  }

  /** The number of questions without an answer. */
  get open() {
    return [...this.asked.keys()].filter((key) => !this.answers.get(key)?.length).length;
  }

  /** Another file: nothing is asked of it yet. */
  forget() {
    this.asked.clear();
    this.answers.clear();
    this.draw();
  }

  /**
   * Ask these, too; what is answered stays.
   *
   * @param {Question[]} questions
   * @param {Record<string, string>} roles
   */
  show(questions, roles) {
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
      if (JSON.stringify(before) !== JSON.stringify(question) || !this.answers.has(key))
        this.fields.delete(key);
    }
    this.draw();
    this.lead();
    const [first] = this.asked.values();
    if (first !== undefined && questions.length > 0)
      announce(`${counted(questions.length, "question")} to answer. ${plain(questions[0].text)}`);
  }

  /** Nothing else is asked; which column is judged stays open where roles were given instead. */
  settle() {
    for (const [key, question] of this.asked)
      if (!this.answers.get(key)?.length && question.name !== "answer") this.asked.delete(key);
    this.draw();
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
    this.draw();
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

  /** The questions on the page; a field that stays keeps the focus. */
  draw() {
    for (const key of [...this.fields.keys()])
      if (!this.asked.has(key)) {
        this.fields.get(key)?.remove();
        this.fields.delete(key);
      }
    const list = byId("questions-list");
    const focused = list.contains(document.activeElement) ? document.activeElement : null;
    for (const [key, question] of this.asked)
      if (!this.fields.has(key)) this.fields.set(key, this.field(key, question));
    const fields = [...this.asked.keys()].map(
      (key) => /** @type {HTMLElement} */ (this.fields.get(key)),
    );
    if (fields.some((field, at) => list.children[at] !== field)) fill(list, fields);
    if (focused instanceof HTMLInputElement && document.activeElement !== focused) {
      const inputs = [...list.querySelectorAll("input")];
      inputs.find(({ name, value }) => name === focused.name && value === focused.value)?.focus();
    }
    byId("questions").hidden = this.asked.size === 0;
    this.tell();
  }

  tell() {
    byId("questions-told").textContent =
      this.open === 0
        ? "All answered. You can change an answer here."
        : `${counted(this.open, "question")} to answer before the pool can be created: the file does not say it, and it decides what is measured or what judges see.`;
  }

  /** The focus to the first open question, unless somebody is at work elsewhere in the form. */
  lead() {
    const { activeElement } = document;
    if (activeElement !== document.body && activeElement?.id !== "file") return;
    const first = [...this.asked.keys()].find((key) => !this.answers.get(key)?.length);
    const field = this.fields.get(first ?? "");
    field?.querySelector("input")?.focus();
    field?.scrollIntoView({ block: "nearest" });
  }

  /**
   * @param {string} key
   * @param {Question} question
   */
  field(key, question) {
    const several = SEVERAL.includes(question.name);
    const given = this.answers.get(key) ?? [];
    const example = Object.entries(question.example ?? {});
    return el(
      "fieldset",
      { class: "question" },
      el("legend", {}, marked(question.text)),
      example.length === 0 ? null : el("p", { class: "help" }, "For example, this row:"),
      example.length === 0
        ? null
        : el(
            "dl",
            { class: "example-row" },
            example.map(([name, value]) =>
              el(
                "div",
                {},
                el("dt", {}, el("bdi", {}, name), ": "),
                el("dd", {}, el("bdi", {}, String(value))),
              ),
            ),
          ),
      question.choices.map((choice) => {
        const input = el("input", {
          type: several ? "checkbox" : "radio",
          name: `question-${key}`,
          value: choice.value,
          checked: given.includes(choice.value),
        });
        input.addEventListener("change", () => this.take(key, choice.value, several));
        return el(
          "label",
          { class: "choice" },
          input,
          " ",
          el(
            "span",
            {},
            el("strong", {}, el("bdi", {}, named(question, choice.value))),
            el("br", {}),
            el("span", { class: "quiet-text" }, marked(choice.means)),
          ),
        );
      }),
      OPEN.includes(question.name) || question.choices.length === 0
        ? this.another(key, question)
        : null,
    );
  }

  /**
   * A field for an answer in words of one's own.
   *
   * @param {string} key
   * @param {Question} question
   */
  another(key, question) {
    const values = question.choices.map((choice) => choice.value);
    const given = (this.answers.get(key) ?? []).filter((value) => !values.includes(value));
    const before = (values[0] ?? "").match(/^.*=/)?.[0] ?? "";
    const input = el("input", {
      type: "text",
      maxlength: "200",
      autocomplete: "off",
      value: (given[0] ?? "").slice(before.length),
      placeholder: question.name === "scale" ? "such as 1 to 7" : "",
    });
    input.addEventListener("change", () => {
      const listed = input.closest("fieldset")?.querySelectorAll("input[type=radio]") ?? [];
      for (const radio of listed) /** @type {HTMLInputElement} */ (radio).checked = false;
      const value = input.value.trim();
      if (value === "") this.answers.delete(key);
      else this.answers.set(key, [`${before}${value}`]);
      this.changed();
    });
    return el(
      "label",
      { class: "field" },
      values.length > 0 ? "Another answer " : "Answer ",
      input,
    );
  }

  /**
   * @param {string} key
   * @param {string} value
   * @param {boolean} several
   */
  take(key, value, several) {
    const { name, column } = /** @type {Question} */ (this.asked.get(key));
    if (name === "mapping") return this.placed(column ?? "", value);
    const before = several ? (this.answers.get(key) ?? []) : [];
    const after = before.includes(value)
      ? before.filter((one) => one !== value)
      : [...before, value];
    this.answers.set(key, after);
    this.tell();
    return this.changed();
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

/**
 * The value of a choice, without the name of the column that the question has said.
 *
 * @param {Question} question
 * @param {string} value
 */
function named({ name, column }, value) {
  if (name === "mapping") return ROLES[value] ?? value;
  const before = `${column}=`;
  return name !== "repeats" && value.startsWith(before) ? value.slice(before.length) : value;
}

/**
 * A text with the names of columns set apart.
 *
 * @param {string} text
 */
function marked(text) {
  return text
    .split("`")
    .map((part, at) => (at % 2 === 1 ? el("code", {}, el("bdi", {}, part)) : part));
}

/** @param {string} text */
function plain(text) {
  return text.replaceAll("`", "");
}
