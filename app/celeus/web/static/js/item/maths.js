/* Formulas in LaTeX: found in a text, and shown by a library that is loaded for the first one. */

import { button, el } from "../dom.js";
import { roomFor } from "./room.js";

/** @import { Room } from "./room.js" */

/** @typedef {{ source: string, tex: string, display: boolean }} Formula */
/** @typedef {{ text?: string, type?: string, src?: string, attributes?: Record<string, unknown>, classes?: string[], style?: Record<string, string>, children?: Made[] }} Made */
/** @import Temml from "../../vendor/temml/temml.min.js" */

const MATHML = "http://www.w3.org/1998/Math/MathML";
const LONGEST = 4_000;
const LONGEST_TEXT = 200_000;
/** Formulas that are found in one text; the others are text. */
const MOST = 3_000;
const DEEPEST = 60;
const MOST_NODES = 4_000;
const MOST_EXPANSIONS = 500;
/** The largest size that a formula may ask for, in em and in points. */
const SIZES = /** @type {[number, number]} */ ([12, 160]);
/** The least and the largest length, in em, and what the units are of one. */
const LENGTHS = /** @type {const} */ ([-2, SIZES[0]]);
/** @type {Record<string, number>} */
const UNITS = {
  em: 1,
  ex: 0.5,
  px: 1 / 16,
  pt: 1 / 12,
  pc: 1,
  in: 6,
  cm: 2.4,
  mm: 0.24,
  "%": 0.05,
};
/** Formulas that are higher than so many pixels are scrolled. */
const HIGHEST = 1_200;
/** @type {[open: string, close: string, display: boolean][]} */
const DELIMITERS = [
  ["$$", "$$", true],
  ["\\[", "\\]", true],
  ["\\(", "\\)", false],
  ["$", "$", false],
];
const ORDINAL = /^(?:st|nd|rd|th|s)\b/;
const TAGS = new Set([
  ...["math", "mrow", "mstyle", "mpadded", "mphantom", "mspace", "mtext", "mi", "mn", "mo", "ms"],
  ...["mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder", "mover", "munderover"],
  ...["mtable", "mtr", "mtd", "menclose", "mmultiscripts", "mprescripts", "none", "mlabeledtr"],
]);
const ATTRIBUTES = new Set([
  ...["width", "height", "depth", "lspace", "rspace", "voffset", "minsize", "maxsize", "mathsize"],
  ...["mathcolor", "mathbackground", "mathvariant", "displaystyle", "scriptlevel", "display"],
  ...["stretchy", "fence", "form", "symmetric", "separator", "movablelimits", "largeop", "accent"],
  ...["linethickness", "linebreak", "notation", "rowspacing", "columnalign", "columnspacing"],
]);
const STYLES = new Set([
  ...["color", "background-color", "font-weight", "font-style", "font-family", "math-depth"],
  ...["padding", "padding-left", "padding-right", "padding-top", "padding-bottom", "margin-left"],
  ...["text-align", "width", "height", "display", "justify-content"],
  ...["border", "border-top", "border-right", "border-bottom", "border-left"],
]);

const COLOURS = new Set(["mathcolor", "mathbackground", "color", "background-color"]);

/** @type {Promise<typeof Temml> | null} */
let library = null;

/** Have the library at hand before it is needed. */
export function loadMaths() {
  library ??= Promise.all([
    import("../../vendor/temml/temml.min.js"),
    // Where this is part of a bundle it lies in another folder
    styled(import.meta.url.replace(/\/js\/.*/, "/vendor/temml/Temml-Local.css")),
  ]).then(([{ default: temml }]) => temml);
  return library;
}

/** @param {string} href */
function styled(href) {
  return new Promise((resolve, reject) => {
    const link = el("link", { rel: "stylesheet", href, on: { load: resolve, error: reject } });
    document.head.append(link);
  });
}

/**
 * A text, with its formulas as elements.
 *
 * @param {string} text
 * @param {Room} room
 * @returns {Child}
 */
export function withMaths(text, room) {
  /** @type {Child[]} */
  const pieces = [];
  let told = 0;
  for (const { at, formula } of formulasIn(text)) {
    pieces.push(text.slice(told, at), formulaView(formula, room));
    told = at + formula.source.length;
    if (pieces.length >= 2 * MOST) break;
  }
  return [...pieces, text.slice(told)];
}

/**
 * Whether a text holds a formula, for who would load the library beforehand.
 *
 * @param {string} text
 */
export function holdsMaths(text) {
  return !formulasIn(text).next().done;
}

/** @param {string} text */
function* formulasIn(text) {
  if (text.length > LONGEST_TEXT) return;
  const sign = /[$\\]/g;
  for (let found = sign.exec(text); found !== null; found = sign.exec(text)) {
    const formula = formulaAt(text, found.index);
    if (formula !== null) {
      yield { at: found.index, formula };
      sign.lastIndex = found.index + formula.source.length;
      // What follows a backslash begins nothing
    } else if (found[0] === "\\") sign.lastIndex += 1;
  }
}

/**
 * The formula that begins at a place of a text: `$…$`, `$$…$$`, `\(…\)` or `\[…\]`; null where none
 * does, as where dollars are money.
 *
 * @param {string} text
 * @param {number} at
 * @returns {Formula | null}
 */
export function formulaAt(text, at) {
  const delimiter = DELIMITERS.find(([begin]) => text.startsWith(begin, at));
  if (delimiter === undefined) return null;
  const [open, close, display] = delimiter;
  const begin = at + open.length;
  const end = closing(text, begin, close);
  const after = end + close.length;
  if (end < 0 || after - begin > LONGEST) return null;
  const tex = text.slice(begin, end);
  if (tex.trim() === "") return null;
  if (open === "$" && /[A-Za-z0-9]/.test(text[at - 1] ?? "")) return null;
  if (open.startsWith("$") && !isFormula(tex, text, after, display)) return null;
  return { source: text.slice(at, after), tex: tex.trim(), display };
}

/** The ends found last, by delimiter: those that begin before one of them are not sought again. */
const ends = {
  text: "",
  /** @type {Map<string, { from: number, at: number }>} */
  found: new Map(),
};

/**
 * Where a formula that begins at a place ends; -1 where it does not.
 *
 * @param {string} text
 * @param {number} begin
 * @param {string} close
 */
function closing(text, begin, close) {
  if (ends.text !== text) {
    ends.text = text;
    ends.found.clear();
  }
  const last = ends.found.get(close);
  if (last && last.from <= begin && (begin <= last.at || last.at < 0)) return last.at;
  let at = text.indexOf(close, begin);
  if (close.startsWith("$"))
    while (at > begin && text[at - 1] === "\\") at = text.indexOf(close, at + 1);
  ends.found.set(close, { from: begin, at });
  return at;
}

/**
 * Whether what stands between dollars is a formula, and no price or the name of a variable.
 *
 * @param {string} tex
 * @param {string} text
 * @param {number} after where the text goes on
 * @param {boolean} display
 */
function isFormula(tex, text, after, display) {
  const rest = text.slice(after, after + 3);
  if (display ? rest.startsWith("$") : /^\s|\s$/.test(tex)) return false;
  if (!display && /^[A-Za-z0-9{]/.test(rest) && !ORDINAL.test(rest)) return false;
  const prose = /\p{L}{2,}[^\p{L}]+\p{L}{2,}|^[\d.,]+\s+\p{L}{2,}/u.test(tex);
  return !prose || /[\\^_{}=<>]/.test(tex);
}

/** What is shown as it was written, as the item has no room for more formulas. */
/** @type {WeakMap<Element, Formula>} */
const waiting = new WeakMap();

/**
 * A formula as its source, until the library shows it; one that is broken, or too large to be
 * meant, stays so, and one for which there is no room until it is asked for.
 *
 * @param {Formula} formula
 * @param {Room} room
 */
export function formulaView(formula, room) {
  const { source, display } = formula;
  const place = el("span", { class: `payload-formula${display ? " display" : ""}` }, source);
  show(place, formula, room);
  return place;
}

/**
 * What is said of formulas that wait, wherever there are some beside it, and a button for them.
 */
export function waitingFormulas() {
  const told = el("p", { class: "payload-waiting" }, "Some formulas are as they were written. ");
  const more = () => {
    const room = roomFor();
    for (const place of told.parentElement?.querySelectorAll(".payload-formula.waiting") ?? []) {
      const formula = waiting.get(place);
      if (room.formulas === 0) break;
      if (formula) show(/** @type {HTMLElement} */ (place), formula, room);
    }
  };
  told.append(button("Show more formulas", more));
  return told;
}

/**
 * @param {HTMLElement} place
 * @param {Formula} formula
 * @param {Room} room
 */
function wait(place, formula, room) {
  room.formulas = 0;
  waiting.set(place, formula);
  place.classList.add("waiting");
}

/**
 * @param {HTMLElement} place
 * @param {Formula} formula
 * @param {Room} room
 */
function show(place, formula, room) {
  if (room.formulas <= 0) {
    wait(place, formula, room);
    return;
  }
  room.formulas -= 1;
  place.classList.remove("waiting");
  const { tex, display } = formula;
  loadMaths()
    .then((temml) => {
      if (room.nodes <= 0) {
        wait(place, formula, room);
        return;
      }
      const made = temml.__renderToMathMLTree(tex, {
        displayMode: display,
        maxExpand: MOST_EXPANSIONS,
        maxSize: SIZES,
        throwOnError: true,
        trust: false,
        wrap: "tex",
      });
      const left = { nodes: MOST_NODES };
      const shown = built(made, 0, left);
      room.nodes -= MOST_NODES - left.nodes;
      if (!shown.some((node) => node.nodeName === "math")) throw new RangeError("no formula");
      place.replaceChildren(...shown);
      if (fresh.push(place) === 1) requestAnimationFrame(keepWithin);
    })
    .catch(() => place.classList.add("broken"));
}

/** Formulas since the last frame: first all are measured, and then those changed that have to be. */
/** @type {HTMLElement[]} */
const fresh = [];

/** A formula wider than its text, or very high, is scrolled, also by keys. */
function keepWithin() {
  const found = fresh.splice(0).flatMap((place) => {
    const room = place.parentElement?.getBoundingClientRect().right;
    const parts = place.querySelectorAll(":scope > *, :scope > math > *");
    const boxes = Array.from(parts, (one) => one.getBoundingClientRect());
    const right = Math.max(...boxes.map((box) => box.right));
    const kinds = [
      ...(room !== undefined && right > room + 1 ? ["wide"] : []),
      ...(boxes.some((box) => box.height > HIGHEST) ? ["high"] : []),
    ];
    return kinds.length > 0 ? [{ place, kinds }] : [];
  });
  for (const { place, kinds } of found) {
    place.classList.add(...kinds);
    for (const [name, value] of Object.entries({ tabindex: "0", role: "group" }))
      place.setAttribute(name, value);
    place.setAttribute("aria-label", `A ${kinds.join(" and ")} formula`);
  }
}

/**
 * Elements of what the library made, of those that may be there: none that could load or lead
 * anywhere.
 *
 * @param {Made} made
 * @param {number} depth
 * @param {{ nodes: number }} left
 * @returns {Node[]}
 */
function built(made, depth, left) {
  left.nodes -= 1;
  if (depth > DEEPEST || left.nodes < 0) throw new RangeError("a formula too large to be meant");
  if (typeof made.text === "string") return [document.createTextNode(made.text)];
  if (made.src !== undefined) return [];
  const inside = (made.children ?? []).flatMap((one) => built(one, depth + 1, left));
  const { type, attributes } = made;
  if (attributes === undefined || (type !== undefined && !TAGS.has(type))) return inside;
  const element = elementOf(type);
  for (const [name, value] of Object.entries(attributes))
    if (ATTRIBUTES.has(name)) element.setAttribute(name, capped(name, String(value)));
  element.classList.add(...(made.classes ?? []).filter(Boolean));
  for (const [name, value] of Object.entries(made.style ?? {})) style(element, name, String(value));
  element.append(...inside);
  return [element];
}

/**
 * @param {string | undefined} type
 * @returns {HTMLElement | MathMLElement}
 */
function elementOf(type) {
  if (type === undefined) return document.createElement("span");
  return /** @type {MathMLElement} */ (document.createElementNS(MATHML, type));
}

/**
 * @param {HTMLElement | MathMLElement} element
 * @param {string} name as in `style`, in camel case or with hyphens
 * @param {string} value
 */
function style(element, name, value) {
  const rule = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  if (STYLES.has(rule)) element.style.setProperty(rule, capped(rule, value));
}

/**
 * A value with its lengths brought within what a formula may ask for.
 *
 * @param {string} name
 * @param {string} value
 */
function capped(name, value) {
  if (COLOURS.has(name)) return value;
  return value.replace(/(?<![#\w])([-+]?)(\d*\.?\d+)([a-z%]+)/gi, (whole, sign, digits, unit) => {
    const one = UNITS[unit.toLowerCase()];
    if (one === undefined) return "0px";
    const length = Number(digits) * one;
    const most = sign === "-" ? -LENGTHS[0] : LENGTHS[1];
    return length <= most ? whole : `${sign}${most}em`;
  });
}
