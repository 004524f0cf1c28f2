/* What the labelling page shows: the item, what can be said of it, and how it goes on. */

import { byId, el, fill } from "../dom.js";
import { itemView } from "./payload.js";

const FLASH_MS = 160;

const RESTS = {
  active: ["One moment", "The next item is on its way."],
  all_leased: ["Others hold what is left", "The items left are with other people just now. The next one comes by itself."],
  paused: ["Paused", "Somebody has paused the session. Stay, and it goes on here by itself when they resume it."],
  target_reached: ["Enough", "The session has all the labels it needs. Thank you."],
  decided: ["Enough", "The session has all the labels it needs. Thank you."],
  budget_spent: ["All done", "Every item that was to be judged is judged. Thank you."],
  exhausted: ["All done", "Every item that was to be judged is judged. Thank you."],
  closed: ["Closed", "The session is closed and takes no more labels. Thank you."],
};
const AWAY = ["Waiting for the connection", "The next item comes when the service can be reached again. You need not do anything."];

/** Show an item, or with null how it goes on. */
export function showItem(draw, form, state, line) {
  const item = byId("item");
  const rest = byId("rest");
  item.hidden = draw === null;
  rest.hidden = draw !== null;
  byId("answers").hidden = draw === null;
  byId("unjudgeable").hidden = draw === null;
  byId("dock").hidden = false;
  if (draw === null) {
    delete item.dataset.round;
    const [title, words] = line !== "up" && state !== "closed" ? AWAY : RESTS[state] ?? RESTS.active;
    if (rest.dataset.title !== title) fill(rest, el("h2", {}, title), el("p", {}, words));
    rest.dataset.title = title;
    return;
  }
  if (item.dataset.round === String(draw.round)) return;
  fill(item, itemView(draw.item, form.asked));
  item.dataset.round = draw.round;
  if (item.getBoundingClientRect().top < 0) item.scrollIntoView({ block: "start" });
}

/** Show what can be said; the same form again keeps its elements, and the focus with them. */
export function showAnswers(form, judge) {
  const answers = byId("answers");
  const signature = JSON.stringify(form);
  if (answers.dataset.form !== signature) {
    answers.dataset.form = signature;
    answers.dataset.kind = form.kind;
    answers.classList.toggle("short", form.kind === "buttons" && form.options.every((one) => one.name === one.key));
    const made = { buttons: buttonsOf, field: fieldOf, scale: scaleOf }[form.kind];
    fill(answers, made(form, judge));
    byId("legend").textContent = { buttons: "", field: "Enter gives it, Esc leaves the field", scale: "← → move, 0–9 jump, Enter gives it" }[form.kind];
  }
  const scale = document.getElementById("loss");
  if (scale !== null) untouched(scale);
  const field = document.getElementById("class");
  if (field !== null) {
    field.value = "";
    if (!byId("why").open) field.focus({ preventScroll: true });
  }
}

function buttonsOf(form, judge) {
  return form.options.map((option) =>
    el(
      "button",
      {
        type: "button",
        class: `button answer${"loss" in option.said ? ` loss-${option.said.loss}` : ""}`,
        "aria-keyshortcuts": option.key,
        dataset: { key: option.key },
        on: { click: () => judge(option.said) },
      },
      el("kbd", {}, option.key),
      el("span", {}, option.name),
    ),
  );
}

function fieldOf(form, judge) {
  const names = form.names;
  const wrong = el("p", { class: "error", id: "class-wrong", role: "alert", hidden: true });
  const input = el("input", { id: "class", autocomplete: "off", "aria-describedby": "class-wrong", list: names ? "classes" : null, inputmode: names ? null : "numeric" });
  const submit = (event) => {
    event.preventDefault();
    const label = labelOf(input.value, form);
    wrong.hidden = label !== null;
    wrong.textContent = names ? "There is no such class." : `A class is a whole number from 0${form.classes ? ` to ${form.classes - 1}` : ""}.`;
    if (label === null) input.setAttribute("aria-invalid", "true");
    else {
      input.removeAttribute("aria-invalid");
      judge({ label });
    }
  };
  return el(
    "form",
    { class: "answer-field", on: { submit } },
    el("div", { class: "field" }, el("label", { for: "class" }, "Class"), input, wrong),
    names && el("datalist", { id: "classes" }, names.map((name) => el("option", { value: name }))),
    el("button", { class: "button primary", type: "submit" }, "Give this class"),
  );
}

function labelOf(typed, form) {
  const text = typed.trim().toLowerCase();
  if (text === "") return null;
  if (form.names !== null) {
    const names = form.names.map((name) => name.toLowerCase());
    if (names.includes(text)) return names.indexOf(text);
    const begun = names.flatMap((name, at) => (name.startsWith(text) ? [at] : []));
    return begun.length === 1 ? begun[0] : null;
  }
  if (!/^[0-9]{1,9}$/.test(text)) return null;
  const label = Number(text);
  return form.classes === null || label < form.classes ? label : null;
}

function scaleOf(form, judge) {
  const { best, worst, step } = form;
  const range = el("input", { type: "range", id: "loss", min: best, max: worst, step, "aria-describedby": "loss-ends" });
  const output = el("output", { for: "loss", class: "figure" });
  const give = el("button", { type: "submit", class: "button primary", id: "give" }, "Give this loss ", el("kbd", {}, "Enter"));
  range.addEventListener("input", () => {
    output.textContent = shortest(range.valueAsNumber);
    output.classList.add("chosen");
    range.dataset.touched = "yes";
    give.disabled = false;
  });
  const submit = (event) => {
    event.preventDefault();
    if (range.dataset.touched === "yes") judge({ loss: clamped(range.valueAsNumber, best, worst) });
  };
  return el(
    "form",
    { class: "answer-scale", on: { submit } },
    el("div", { class: "scale-head" }, el("label", { for: "loss" }, "Loss"), output),
    range,
    el("div", { class: "scale-ends", id: "loss-ends" }, el("span", {}, `${shortest(best)} best`), el("span", {}, `${shortest(worst)} worst`)),
    give,
  );
}

function untouched(range) {
  const { min, max } = range;
  range.value = String((Number(min) + Number(max)) / 2);
  range.dataset.touched = "no";
  const output = document.querySelector(".answer-scale output");
  output.textContent = "not chosen yet";
  output.classList.remove("chosen");
  byId("give").disabled = true;
}

/** Move the slider: to a share of the scale, or by so many steps. */
export function moveScale({ share, steps }) {
  const range = byId("loss");
  const [best, worst, step] = [range.min, range.max, range.step].map(Number);
  const to = share === undefined ? range.valueAsNumber + steps * step : best + share * (worst - best);
  range.value = String(clamped(to, best, worst));
  range.dispatchEvent(new Event("input"));
}

function clamped(value, best, worst) {
  // The ends exactly, and no digits that come from adding steps
  return Math.min(worst, Math.max(best, Number(value.toPrecision(12))));
}

function shortest(value) {
  return String(Number(value.toPrecision(4)));
}

/** Show for a moment which button a key has pressed. */
export function flash(key) {
  const button = document.querySelector(`#answers [data-key="${CSS.escape(key)}"]`);
  button?.classList.add("pressed");
  setTimeout(() => button?.classList.remove("pressed"), FLASH_MS);
}

/** Show the notices: `{tone, words, action}`, where the action is an element. */
export function showNotices(notices) {
  const place = byId("notices");
  const signature = JSON.stringify(notices.map((one) => [one.tone, one.words]));
  if (place.dataset.shown === signature) return;
  place.dataset.shown = signature;
  fill(place, notices.map((one) => el("div", { class: `notice ${one.tone ?? ""}` }, el("p", {}, one.words), one.action ?? null)));
}
