/* The fields of a correction: what the pool's judges say of an item, and no other thing. */

import { el, fill } from "../dom.js";

/** @typedef {{ a: string, b: string }} Names */

export class Correction {
  /** @type {HTMLElement[]} */
  #controls = [];
  #task;
  #names;

  /**
   * @param {Task} task
   * @param {Names} names those of two systems
   */
  constructor(task, names) {
    this.#task = task;
    this.#names = names;
  }

  /** @param {HTMLElement} place */
  draw(place) {
    const { comparison, classes, loss, takes_labels } = this.#task;
    const { a, b } = this.#names;
    if (takes_labels) {
      const most = classes === null ? "" : `, from 0 to ${classes - 1}`;
      fill(place, this.#number("label", "True class", `Its number${most}.`));
    } else if (comparison?.judged_by === "preference") {
      const grades = comparison.scale[1];
      fill(
        place,
        this.#choice("preference", "Better answer", {
          a,
          tie: "equally good",
          both_bad: "both bad",
          b,
        }),
        grades > 1 ? this.#number("grade", "By how many grades", `From 1 to ${grades}.`) : null,
      );
    } else if (comparison) {
      const help = `From ${comparison.scale[0]} to ${comparison.scale[1]}; less is better.`;
      fill(place, this.#number("a", `Loss of ${a}`, help), this.#number("b", `Loss of ${b}`, help));
    } else {
      const [lower, upper] = loss?.scale ?? [0, 1];
      const better =
        loss?.kind === "difference" ? "below 0 says that A is better" : "less is better";
      fill(place, this.#number("loss", "Loss", `From ${lower} to ${upper}; ${better}.`));
    }
  }

  /** @param {boolean} disabled */
  disable(disabled) {
    for (const one of this.#controls)
      if (one instanceof HTMLInputElement || one instanceof HTMLSelectElement)
        one.disabled = disabled;
  }

  /** What is typed, as a request says it. */
  said() {
    const typed = Object.fromEntries(this.#controls.map((one) => [one.id, valueOf(one)]));
    const { preference } = typed;
    if (preference === "tie" || preference === "both_bad") return { preference };
    if ("a" in typed) return { losses: typed };
    return Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== null));
  }

  /**
   * @param {string} id
   * @param {string} label
   * @param {string} help
   */
  #number(id, label, help) {
    const input = el("input", {
      id,
      inputmode: "decimal",
      autocomplete: "off",
      "aria-describedby": `${id}-help`,
    });
    this.#controls.push(input);
    return el(
      "div",
      { class: "field" },
      el("label", { for: id }, label),
      input,
      el("p", { class: "help", id: `${id}-help` }, help),
    );
  }

  /**
   * @param {string} id
   * @param {string} label
   * @param {Record<string, string>} options
   */
  #choice(id, label, options) {
    const select = el(
      "select",
      { id },
      Object.entries(options).map(([value, name]) => el("option", { value }, name)),
    );
    this.#controls.push(select);
    return el("div", { class: "field" }, el("label", { for: id }, label), select);
  }
}

/** @param {HTMLElement} control */
function valueOf(control) {
  if (control instanceof HTMLSelectElement) return control.value;
  if (!(control instanceof HTMLInputElement)) return null;
  const typed = control.value.trim().replace(",", ".");
  return typed === "" ? null : Number(typed);
}
