/* More classes than there are keys: a list that typing makes shorter, or a number. */

import { byId, cloned, el, fill, only } from "../dom.js";
import { count } from "../format.js";

const MOST_SHOWN = 100;

/** @typedef {NonNullable<Field["options"]>[number]} Option */

/**
 * The field in which a class is typed, with the list of those that fit where they have names.
 *
 * @param {Field} form
 * @param {(said: Judgement) => void} judge
 */
export function fieldOf(form, judge) {
  return form.options === null ? numberOf(form, judge) : listOf(form.options, judge);
}

/** Begin with an empty field; where keys are pressed, in it. */
export function beginField() {
  const field = byId("class", HTMLInputElement);
  field.value = "";
  field.dispatchEvent(new Event("input"));
  // Fingers choose from the list: a keyboard on the screen would hide the item
  const keys = window.matchMedia("(hover: hover)").matches;
  if (keys && !byId("why", HTMLDialogElement).open) field.focus({ preventScroll: true });
}

/**
 * @param {Field} form
 * @param {(said: Judgement) => void} judge
 */
function numberOf({ classes }, judge) {
  return formOf("class-number", (typed) => {
    const label = /^[0-9]{1,9}$/.test(typed) ? Number(typed) : NaN;
    if (label < (classes ?? Infinity)) judge({ label });
    else return `A class is a whole number from 0${classes ? ` to ${classes - 1}` : ""}.`;
    return null;
  });
}

/**
 * A list of which a press gives a class: there is no button beside it.
 *
 * @param {Option[]} options
 * @param {(said: Judgement) => void} judge
 */
function listOf(options, judge) {
  /** @type {Option[]} */
  let fit = [];
  let marked = -1;
  const form = formOf("class-list", (typed) => {
    const chosen = fit[marked];
    if (chosen !== undefined) judge(chosen.said);
    else
      return typed === "" ? "Type a part of its name, or choose one." : "There is no such class.";
    return null;
  });
  const input = only(form, "input", HTMLInputElement);
  const list = only(form, "ul");
  const told = only(form, "#class-told");
  const mark = (/** @type {number} */ at) => {
    marked = at;
    for (const [place, one] of [...list.children].entries())
      one.setAttribute("aria-selected", String(place === at));
    const chosen = list.children[at];
    if (chosen) input.setAttribute("aria-activedescendant", chosen.id);
    else input.removeAttribute("aria-activedescendant");
    if (chosen instanceof HTMLElement) keepInView(list, chosen);
    else list.scrollTop = 0;
    told.textContent = toldOf(fit, options.length, fit[at]);
  };
  const filter = () => {
    fit = fitting(options, input.value);
    const shown = fit.slice(0, MOST_SHOWN);
    fill(
      list,
      shown.map((one, at) => row(one, at, () => judge(one.said))),
    );
    list.hidden = shown.length === 0;
    input.setAttribute("aria-expanded", String(shown.length > 0));
    mark(input.value.trim() === "" || shown.length === 0 ? -1 : 0);
  };
  input.addEventListener("input", filter);
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const { length } = list.children;
    if (step === undefined || length === 0) return;
    event.preventDefault();
    mark(marked < 0 && step < 0 ? length - 1 : (marked + step + length) % length);
  });
  return form;
}

/**
 * The options that a text fits: the one that it is, those that begin with it, and those that have
 * it within; accents and capitals do not matter.
 *
 * @param {Option[]} options
 * @param {string} typed
 */
function fitting(options, typed) {
  const wanted = plain(typed.trim());
  return options
    .map((option) => ({ option, rank: rankOf(plain(option.name), wanted) }))
    .filter(({ rank }) => rank < 3)
    .sort((one, other) => one.rank - other.rank)
    .map(({ option }) => option);
}

/**
 * @param {string} name
 * @param {string} wanted
 */
function rankOf(name, wanted) {
  if (wanted === "") return 0;
  return [name === wanted, name.startsWith(wanted), name.includes(wanted), true].indexOf(true);
}

/** @param {string} name */
function plain(name) {
  return name.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
}

/**
 * @param {Option[]} fit
 * @param {number} all
 * @param {Option | undefined} marked
 */
function toldOf(fit, all, marked) {
  const first = fit.length > MOST_SHOWN ? `, the first ${MOST_SHOWN} shown` : "";
  if (marked === undefined)
    return fit.length === 0 ? "" : `${count(all)} classes${first}: type a part of a name.`;
  const fits = fit.length === 1 ? "1 class fits" : `${count(fit.length)} classes fit`;
  return `${fits}${first}. Enter takes “${marked.name}”.`;
}

/**
 * @param {Option} option
 * @param {number} at
 * @param {() => void} choose
 */
function row({ name }, at, choose) {
  return el(
    "li",
    {
      id: `class-${at}`,
      role: "option",
      on: {
        click: choose,
        // The field keeps the focus
        pointerdown: (/** @type {Event} */ event) => event.preventDefault(),
      },
    },
    name,
  );
}

/**
 * @param {HTMLElement} list
 * @param {HTMLElement} chosen
 */
function keepInView(list, chosen) {
  const [top, bottom] = [chosen.offsetTop, chosen.offsetTop + chosen.offsetHeight];
  if (top < list.scrollTop) list.scrollTop = top;
  else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
}

/**
 * The form of a field, from a template; `submit` gives what is wrong with what was typed.
 *
 * @param {string} template
 * @param {(typed: string) => string | null} submit
 */
function formOf(template, submit) {
  const form = only(cloned(template), "form", HTMLFormElement);
  const input = only(form, "input", HTMLInputElement);
  const wrong = only(form, ".error");
  const say = (/** @type {string | null} */ words) => {
    wrong.hidden = words === null;
    wrong.textContent = words ?? "";
    if (words === null) input.removeAttribute("aria-invalid");
    else input.setAttribute("aria-invalid", "true");
  };
  input.addEventListener("input", () => say(null));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    say(submit(input.value.trim()));
  });
  return form;
}
