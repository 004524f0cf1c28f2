/* What the labelling page shows: the item, what can be said of it, and how it goes on. */

import { byId, el, fill, only } from "../dom.js";
import { beginField, fieldOf } from "./classes.js";
import { vectorOf } from "./metrics.js";
import { lessInstructions } from "../item/members.js";
import { drawView } from "../item/payload.js";
import { preferenceOf, preferenceWords } from "./sides.js";

const FLASH_MS = 160;
const LEFT = "ArrowLeft";
/** @type {Record<string, string>} */
const ARROWS = { ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓", ArrowRight: "→" };

/** @type {Record<DrawAnswer["state"], [title: string, words: string]>} */
const RESTS = {
  active: ["One moment", "The next item is on its way."],
  all_leased: [
    "Others have the remaining items",
    "Other people have the remaining items at the moment. The next one appears here by itself.",
  ],
  waiting: [
    "One moment",
    "Another person has an item that the others wait for. The next one appears here by itself.",
  ],
  paused: [
    "Paused",
    "The session is paused. Leave this page open: it continues by itself when the session resumes.",
  ],
  target_reached: ["Enough", "The session has all the labels it needs. Thank you."],
  decided: ["Enough", "The session has all the labels it needs. Thank you."],
  budget_spent: ["All done", "All items that had to be judged are judged. Thank you."],
  exhausted: ["All done", "All items that had to be judged are judged. Thank you."],
  closed: ["Closed", "The session is closed and takes no more labels. Thank you."],
};
const NOT_YOUR_TURN = [
  "Not your turn",
  "It is the turn of other raters. Your next item appears here by itself.",
];
const NO_RATER = [
  "Not on the panel",
  "The items of this session are judged by a panel of raters, and your key has the name of none of them. Whoever runs the session can tell more.",
];
const PASSED_ON = [
  "Passed on",
  "The next item appears here by itself. What nobody else takes comes back to you.",
];
const GONE = [
  "No such session",
  "The session was deleted, or your key does not belong to it. Whoever runs it can tell more.",
];
const AWAY = [
  "Waiting for the connection",
  "The next item appears when the service can be reached again. You need not do anything.",
];

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

/**
 * Show how it goes on while there is no item.
 *
 * @param {DrawAnswer["state"]} state
 * @param {Line} line
 * @param {boolean | null | undefined} rater whether the person is one of the panel, if there is one
 * @param {boolean} passing whether somebody else is to take what was here
 */
export function showRest(state, line, rater, passing) {
  const rest = byId("rest");
  reveal(false);
  delete byId("item").dataset.round;
  const busy = ["active", "all_leased", "waiting"].includes(state);
  let told = line !== "up" && state !== "closed" ? AWAY : RESTS[state];
  if (line === "gone") told = GONE;
  if (busy && rater === false) told = NO_RATER;
  else if (told === RESTS.all_leased && rater) told = NOT_YOUR_TURN;
  else if (busy && passing && told !== AWAY && told !== GONE) told = PASSED_ON;
  const [title, words] = told;
  if (rest.dataset.title !== title) fill(rest, el("h2", {}, title), el("p", {}, words));
  rest.dataset.title = title;
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
      scale: form.kind === "scale" ? legendOf(form) : "",
    }[form.kind];
  }
  if (form.kind === "scale") untouched();
  if (form.kind === "field") beginField();
}

/**
 * Which end of the levels is the better one, said once.
 *
 * @param {Form} form
 */
function betterEnd(form) {
  const better = form.kind === "scale" ? null : form.better;
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
  return form.kind === "field" ? fieldOf(form, judge) : scaleOf(form, judge);
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
 * @param {Buttons["options"][number]} option
 * @param {(said: Judgement) => void} judge
 */
function buttonOf(option, judge) {
  return el(
    "button",
    {
      type: "button",
      class: `button answer ${option.end ?? ""}`,
      "aria-keyshortcuts": option.keys.join(" "),
      "aria-describedby": option.help ?? null,
      dataset: { key: option.keys.join(" ") },
      on: { click: () => judge(option.said) },
    },
    keyAndName(option),
  );
}

/**
 * The key and the name; a grade that is its own key is both.
 *
 * @param {Buttons["options"][number]} option
 */
function keyAndName({ keys, name }) {
  const key = keys.map((one) => ARROWS[one] ?? one.toUpperCase()).join(" ");
  const own = name.startsWith(`${key} `);
  return [
    el("kbd", { class: own ? "own" : null }, key),
    " ",
    el("span", {}, own ? name.slice(key.length + 1) : name),
  ];
}

/**
 * @param {Slider} form
 * @param {(said: Judgement) => void} judge
 */
function scaleOf(form, judge) {
  const ends =
    form.takes === "preference"
      ? ["left is better", "right is better"]
      : [`${shortest(form.low)} best`, `${shortest(form.high)} worst`];
  const give = el(
    "button",
    { type: "submit", class: "button primary", id: "give" },
    `Submit ${{ loss: "this loss", losses: "these losses", shown: "these losses", metrics: "these losses", preference: "this preference" }[form.takes]} `,
    el("kbd", {}, "Enter"),
  );
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (open() === undefined) judge(saidBy(form));
  };
  return el(
    "form",
    { class: "answer-scale", on: { submit } },
    form.lines.map((line, at) => lineOf(form, line, at)),
    form.scales === undefined ? endsOf("loss-ends", ends) : null,
    give,
    form.options?.map((option) => buttonOf(option, judge)),
  );
}

/**
 * @param {string} id
 * @param {string[]} ends
 */
function endsOf(id, ends) {
  return el(
    "div",
    { class: "scale-ends", id },
    ends.map((one) => el("span", {}, one)),
  );
}

/**
 * @param {Slider} form
 * @param {string} line
 * @param {number} at
 */
function lineOf(form, line, at) {
  const id = at === 0 ? "loss" : `loss-${at}`;
  const own = form.scales?.[at];
  const { low, high, step } = own ?? form;
  const range = el("input", {
    type: "range",
    id,
    min: low,
    max: high,
    step,
    "aria-describedby": own === undefined ? "loss-ends" : `${id}-ends`,
  });
  const output = el("output", { for: id, class: "figure" });
  range.addEventListener("input", () => {
    const value = range.valueAsNumber;
    const words =
      form.takes === "preference"
        ? preferenceWords(preferenceOf(value), form.high)
        : shortest(value);
    output.textContent = words;
    if (form.takes === "preference") range.setAttribute("aria-valuetext", words);
    output.classList.add("chosen");
    range.dataset.touched = "yes";
    range.dataset.untold = "no";
    byId("give", HTMLButtonElement).disabled = open() !== undefined;
  });
  return el(
    "div",
    { class: "scale-line" },
    el("div", { class: "scale-head" }, el("label", { for: id }, line), output),
    range,
    own === undefined
      ? null
      : endsOf(`${id}-ends`, [`${shortest(low)} best`, `${shortest(high)} worst`]),
  );
}

/** @returns {HTMLInputElement[]} */
function ranges() {
  return [...byId("answers").querySelectorAll("input")].filter((one) => one.type === "range");
}

/** The first slider that nobody has moved yet. */
function open() {
  return ranges().find((one) => one.dataset.touched !== "yes");
}

/** The slider that keys move. */
function moving() {
  const all = ranges();
  return all.find((one) => one === document.activeElement) ?? open() ?? all[0];
}

/**
 * @param {Slider} form
 * @returns {Judgement}
 */
function saidBy(form) {
  const { takes, low, high } = form;
  if (takes === "metrics") {
    const told = ranges().map((one) => {
      const [best, worst] = [one.min, one.max].map(Number);
      return one.dataset.untold === "yes" ? null : clamped(one.valueAsNumber, best, worst);
    });
    return vectorOf(form, told);
  }
  const [first, second] = ranges().map((one) => clamped(one.valueAsNumber, low, high));
  if (takes === "loss") return { loss: first };
  if (takes === "shown")
    return { losses: ranges().map((one) => clamped(one.valueAsNumber, low, high)) };
  return takes === "losses" ? { losses: { left: first, right: second } } : preferenceOf(first);
}

/** @param {Slider} form */
function legendOf({ takes, low, high }) {
  if (takes === "preference") return "← → move, ↓ as good, Enter submits it";
  if (takes === "metrics")
    return "1 best, 2 worst, or 0–9 on a scale; U cannot tell, Tab or ↑ ↓ another, Enter submits";
  const others = takes !== "loss" ? "↑ ↓ another answer, " : "";
  const digits = isGraded(low, high) ? `${low}–${high} grade` : "0–9 jump";
  return `← → move, ${digits}, ${others}Enter submits it`;
}

function untouched() {
  for (const range of ranges()) {
    const { min, max } = range;
    range.value = String((Number(min) + Number(max)) / 2);
    range.dataset.touched = range.dataset.untold = "no";
    const output = only(document, `output[for="${range.id}"]`);
    output.textContent = "not chosen yet";
    output.classList.remove("chosen");
  }
  if (moving() === document.activeElement) ranges()[0].focus({ preventScroll: true });
  byId("give", HTMLButtonElement).disabled = true;
}

/**
 * Move the slider: to a share of the scale, or by so many steps.
 *
 * @param {{ share?: number, steps?: number }} move
 */
export function moveScale({ share, steps = 0 }) {
  const range = moving();
  const [best, worst, step] = [range.min, range.max, range.step].map(Number);
  const to =
    share === undefined ? range.valueAsNumber + steps * step : best + share * (worst - best);
  range.value = String(clamped(to, best, worst));
  range.dispatchEvent(new Event("input"));
}

/**
 * A digit on the slider: the grade it names, where grades are whole numbers of one digit; else a
 * share of the scale.
 *
 * @param {number} digit
 */
export function keyScale(digit) {
  const { min, max } = moving();
  const [best, worst] = [min, max].map(Number);
  if (!isGraded(best, worst)) moveScale({ share: digit / 10 });
  else if (best <= digit && digit <= worst) moveScale({ share: (digit - best) / (worst - best) });
}

/**
 * @param {number} best
 * @param {number} worst
 */
function isGraded(best, worst) {
  const digits = [best, worst].every((end) => Number.isInteger(end) && 0 <= end && end <= 9);
  return digits && worst - best > 1;
}

/**
 * A digit on the slider of a metric: 1 and 2 are the ends of one with two places, as of two
 * buttons, and go on to the next; on others as on any slider.
 *
 * @param {number} digit
 */
export function keyMetric(digit) {
  const { min, max, step } = moving();
  const two = Number(max) - Number(min) === Number(step);
  if (!two) keyScale(digit);
  else if (digit === 1 || digit === 2) {
    moveScale({ share: digit - 1 });
    open()?.focus({ preventScroll: true });
  }
}

/** Nobody can tell the loss of the slider that keys move; go on to the next. */
export function cannotTell() {
  const range = moving();
  range.dispatchEvent(new Event("input"));
  range.dataset.untold = "yes";
  only(document, `output[for="${range.id}"]`).textContent = "cannot be told";
  open()?.focus({ preventScroll: true });
}

/**
 * Go on to another slider, around the ends.
 *
 * @param {number} step
 */
export function otherScale(step) {
  const all = ranges();
  const at = all.indexOf(moving()) + step;
  all.at(at % all.length)?.focus({ preventScroll: true });
}

/** Submit the sliders, or go on to the one that nobody has moved yet. */
export function giveScale() {
  const next = open();
  if (next === undefined) byId("give").click();
  else next.focus({ preventScroll: true });
}

/**
 * @param {number} value
 * @param {number} best
 * @param {number} worst
 */
function clamped(value, best, worst) {
  // The ends exactly, and no digits that come from adding steps
  return Math.min(worst, Math.max(best, Number(value.toPrecision(12))));
}

/** @param {number} value */
function shortest(value) {
  return String(Number(value.toPrecision(4)));
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

/**
 * Show the notices: `{tone, words, action}`, where the action is an element.
 *
 * @param {Notice[]} notices
 */
export function showNotices(notices) {
  const place = byId("notices");
  const signature = JSON.stringify(notices.map((one) => [one.tone, one.words]));
  if (place.dataset.shown === signature) return;
  place.dataset.shown = signature;
  fill(
    place,
    notices.map((one) =>
      el("div", { class: `notice ${one.tone ?? ""}` }, el("p", {}, one.words), one.action ?? null),
    ),
  );
}
