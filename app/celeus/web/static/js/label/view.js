/* What the labelling page shows: the item, what can be said of it, and how it goes on. */

import { byId, cloned, el, fill, only } from "../dom.js";
import { beginField, fieldOf } from "./classes.js";
import { beginLines, linesOf } from "./lines.js";
import { lessInstructions } from "../item/members.js";
import { drawView } from "../item/payload.js";

const FLASH_MS = 160;
/** What a judge has to have seen of an item before judging it. */
const JUDGED = ".payload-message.last, .payload-answer, .payload-side, .shown";
/** Pixels of it that are enough: a line. */
const LINE = 32;
const LEFT = "ArrowLeft";
/** @type {Record<string, string>} */
const ARROWS = { ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓", ArrowRight: "→" };

/** @type {Element[]} */
let unseen = [];

/**
 * Show an item, without what it repeats of the instructions beside it.
 *
 * @param {Draw} draw
 * @param {Form} form
 * @param {Task["instructions"]} told
 */
export function showItem(draw, form, told) {
  const item = byId("item");
  reveal(true);
  if (item.dataset.round === String(draw.round)) return;
  fill(item, drawView(lessInstructions(draw, told), form.asked));
  item.dataset.round = String(draw.round);
  if (item.getBoundingClientRect().top < 0) item.scrollIntoView({ block: "start" });
}

/** Open a chat at the reply that is judged, and look what else of the item is in view. */
export function openAtJudged() {
  const parts = [...byId("item").querySelectorAll(JUDGED)];
  unseen = parts.filter((part) => part.checkVisibility());
  byId("unseen").hidden = true;
  const reply = look();
  if (reply?.matches(".payload-message")) reply.scrollIntoView({ block: "start" });
  look();
}

/** The first part that is judged and was never in view; null where there is none. */
export function look() {
  const end = byId("dock").getBoundingClientRect().top - LINE;
  unseen = unseen.filter((part) => {
    const { top, bottom } = part.getBoundingClientRect();
    return part.isConnected && (top > end || bottom < LINE);
  });
  return unseen[0] ?? null;
}

/**
 * Show what is judged before it is; returns what is told.
 *
 * @param {Element} part
 */
export function showUnseen(part) {
  part.scrollIntoView({ block: "start" });
  look();
  const told = byId("unseen");
  told.hidden = false;
  return told.textContent ?? "";
}

/**
 * Show how it goes on while there is no item.
 *
 * @param {DrawAnswer["state"]} state
 * @param {Line} line
 * @param {boolean | null | undefined} rater whether the person is one of the panel, if there is one
 * @param {boolean} passing whether somebody else is to take what was here
 */
export function showRest(state, line, rater, passing) {
  reveal(false);
  delete byId("item").dataset.round;
  /** @type {string} */
  let name = line === "up" || state === "closed" ? state : "away";
  if (line === "gone") name = "gone";
  const busy = ["active", "all_leased", "waiting"].includes(name);
  if (rater === false && ["active", "all_leased", "waiting"].includes(state)) name = "rater";
  else if (name === "all_leased" && rater) name = "turn";
  else if (busy && passing) name = "passed";
  const rest = byId("rest");
  if (rest.dataset.rest !== name) fill(rest, cloned(`rest-${name}`));
  rest.dataset.rest = name;
}

/** @param {boolean} judging */
function reveal(judging) {
  for (const id of ["item", "answers", "unjudgeable", "pass", "comment-open", "ways"])
    byId(id).hidden = !judging;
  byId("rest").hidden = judging;
  byId("dock").hidden = false;
}

/**
 * Show what can be said; the same form again keeps its elements, and the focus with them.
 *
 * @param {Form} form
 * @param {(said: Judgement) => void} judge
 */
export function showAnswers(form, judge) {
  const answers = byId("answers");
  const signature = JSON.stringify(form);
  if (answers.dataset.form !== signature) {
    answers.dataset.form = signature;
    answers.dataset.kind = form.kind;
    answers.classList.toggle(
      "short",
      form.kind === "buttons" && form.options.every((one) => one.name === one.keys[0]),
    );
    const sided = form.kind === "buttons" && form.options.some((one) => one.keys.includes(LEFT));
    answers.classList.toggle("sided", sided);
    answers.dataset.options = String(form.kind === "buttons" ? form.options.length : 0);
    fill(answers, betterEnd(form), elementsOf(form, judge));
    byId("legend").textContent = {
      buttons: "",
      field: `${form.kind === "field" && form.options ? "↑ ↓ choose, " : ""}Enter submits it, Esc leaves the field`,
      lines: form.kind === "lines" ? legendOf(form) : "",
    }[form.kind];
  }
  if (form.kind === "lines") beginLines();
  if (form.kind === "field") beginField();
}

/**
 * Which end of the levels is the better one, said once.
 *
 * @param {Form} form
 */
function betterEnd(form) {
  const better = form.kind === "buttons" && form.better;
  if (!better) return null;
  return el(
    "p",
    { class: "answers-told" },
    `${better === "higher" ? "Higher" : "Lower"} is better.`,
  );
}

/**
 * @param {Form} form
 * @param {(said: Judgement) => void} judge
 */
function elementsOf(form, judge) {
  if (form.kind === "buttons") return buttonsOf(form, judge);
  if (form.kind === "field") return fieldOf(form, judge);
  return linesOf(form, judge, form.options?.map((option) => buttonOf(option, judge)) ?? []);
}

/**
 * @param {Buttons} form
 * @param {(said: Judgement) => void} judge
 */
function buttonsOf(form, judge) {
  if (form.options.length === 0)
    return el(
      "p",
      {},
      "This pool shows no answers to judge: its losses are sent by the systems’ names, through the interface.",
    );
  return form.options.map((option) => buttonOf(option, judge));
}

/**
 * A button with its key and name; a grade that is its own key is both.
 *
 * @param {Buttons["options"][number]} option
 * @param {(said: Judgement) => void} judge
 */
function buttonOf({ end, help, keys, name, said }, judge) {
  const key = keys.map((one) => ARROWS[one] ?? one.toUpperCase()).join(" ");
  const own = name.startsWith(`${key} `);
  const made = cloned("answer", { key, name: own ? name.slice(key.length + 1) : name });
  const button = only(made, "button");
  only(button, "kbd").classList.toggle("own", own);
  if (end) button.classList.add(end);
  if (help) button.setAttribute("aria-describedby", help);
  button.setAttribute("aria-keyshortcuts", keys.join(" "));
  button.dataset.key = keys.join(" ");
  button.addEventListener("click", () => judge(said));
  return button;
}

/** @param {Lines} form */
function legendOf({ takes, lines }) {
  if (takes === "preference") return "← → move, ↓ as good, Enter submits";
  const scaled = lines.some((line) => line.choices === null) ? "type a value or ← → move, " : "";
  const untold = takes === "metrics" ? "U cannot tell, " : "";
  return `${scaled}${untold}${lines.length > 1 ? "↑ ↓ another line, " : ""}Enter submits`;
}

/**
 * Show for a moment which button a key has pressed.
 *
 * @param {string} key
 */
export function flash(key) {
  const button = document.querySelector(`#answers [data-key~="${CSS.escape(key)}"]`);
  button?.classList.add("pressed");
  setTimeout(() => button?.classList.remove("pressed"), FLASH_MS);
}
