/* What a file leaves open: its questions, each with its choices and a row in which it shows. */

import { byId, el, fill } from "../dom.js";

/** Questions that several values may answer. */
const SEVERAL = ["missing"];
/** Questions about numbers, and the roles of columns that have them. */
const OF_NUMBERS = ["better", "scale", "missing"];
const NUMBERS = ["score", "surrogate", "known"];
/** Questions with other answers than those that are listed. */
const OPEN = ["scale"];

/** The questions of a file; `changed` is called when somebody answers one. */
export class Questions {
  /** @param {() => void} changed */
  constructor(changed) {
    this.changed = changed;
    /** @type {Map<string, Question>} */
    this.asked = new Map();
    /** @type {Map<string, string[]>} */
    this.answers = new Map();
  }

  /** Another file: nothing is asked of it yet. */
  forget() {
    this.asked.clear();
    this.answers.clear();
    fill(byId("questions"));
    byId("questions").hidden = true;
  }

  /**
   * Ask these, too; what is answered stays.
   *
   * @param {Question[]} questions
   */
  show(questions) {
    for (const question of questions) {
      // A mapping is given in the table of columns
      if (question.name === "mapping") continue;
      const key = JSON.stringify([question.name, question.column]);
      this.asked.set(key, question);
      this.answers.delete(key);
    }
    fill(
      byId("questions"),
      [...this.asked].map(([key, question]) => this.field(key, question)),
    );
    byId("questions").hidden = this.asked.size === 0;
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
      {},
      el("legend", {}, question.text),
      example.length === 0
        ? null
        : el(
            "p",
            { class: "help" },
            "Such a row: ",
            el("bdi", {}, example.map(([name, value]) => `${name}: ${value}`).join(" · ")),
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
            el("strong", {}, el("bdi", {}, choice.value)),
            " ",
            el("span", { class: "quiet-text" }, choice.means),
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
    const before = several ? (this.answers.get(key) ?? []) : [];
    const after = before.includes(value)
      ? before.filter((one) => one !== value)
      : [...before, value];
    this.answers.set(key, after);
    this.changed();
  }
}
