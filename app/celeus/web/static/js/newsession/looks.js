/* The first items of a file as a judge will see them, by what shows them to judges. */

import { byId, el, fill } from "../dom.js";
import { drawView } from "../item/payload.js";

/** @typedef {NonNullable<Draw["left"]>} Answer */
/** What is not shown to a judge, and yet part of the item. */
const BESIDE = {
  surrogate: "guess of the loss",
  weight: "weight",
  group: "group",
  prediction: "predicted class",
};

/** The items, one at a time. */
export class Looks {
  constructor() {
    /** @type {PoolFileAnswer["first"]} */
    this.items = [];
    this.at = 0;
    byId("item-before").addEventListener("click", () => this.turn(-1));
    byId("item-after").addEventListener("click", () => this.turn(1));
  }

  forget() {
    this.items = [];
    this.at = 0;
    byId("looks").hidden = true;
  }

  /** @param {PoolFileAnswer} found */
  show({ first: items, columns }) {
    const hidden = columns.filter((column) => column.role === "hidden");
    byId("item-hidden").hidden = hidden.length === 0;
    fill(
      byId("item-hidden"),
      "Hidden from judges: ",
      hidden.map(({ name }, at) => [at > 0 ? ", " : "", el("bdi", {}, name)]).flat(),
    );
    this.items = items;
    this.at = Math.max(0, Math.min(this.at, items.length - 1));
    byId("looks").hidden = items.length === 0;
    if (items.length > 0) this.turn(0);
  }

  /** @param {number} step */
  turn(step) {
    const { length } = this.items;
    this.at = (this.at + step + length) % length;
    const item = /** @type {Record<string, any>} */ (this.items[this.at].item);
    byId("item-place").textContent = `${this.at + 1} of ${length}`;
    byId("looks-turn").hidden = length < 2;
    fill(byId("item-shown"), drawView(drawOf(item), false));
    fill(
      byId("item-beside"),
      el("bdi", {}, `Item ${item.id}`),
      Object.entries(BESIDE).map(([name, words]) =>
        item[name] === undefined || item[name] === null ? null : ` · ${words} ${short(item[name])}`,
      ),
    );
  }
}

/**
 * An uploaded item as if it were drawn.
 *
 * @param {Record<string, any>} item
 * @returns {Draw}
 */
function drawOf({ id, payload, a, b, answers }) {
  const item = { index: 0, id: String(id), payload: payload ?? null };
  const [left, right] = [a, b].map((one) => (one ? answerOf(one) : null));
  const several = answers ? Object.values(answers).map(answerOf) : null;
  return /** @type {Draw} */ ({ round: 0, item, left, right, answers: several });
}

/**
 * @param {Partial<Answer>} told
 * @returns {Answer}
 */
function answerOf({ answer = null, payload = null }) {
  return { answer, payload };
}

/** @param {unknown} value */
function short(value) {
  return typeof value === "number" ? Number(value.toPrecision(3)) : String(value);
}
