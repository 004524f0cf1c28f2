/* Markdown as elements: parsed by markdown-it without HTML, built from a list of what may be there. */

import { el } from "../dom.js";
import { formulaAt, formulaView } from "./maths.js";
import { pictureIn } from "./media.js";
import { folded } from "./texts.js";

const LONGEST = 200_000;
const MOST_ELEMENTS = 10_000;
const MOST_LINES = 100;
const PLAIN = new Set([
  ...["p", "br", "hr", "em", "strong", "s", "code", "blockquote", "ul", "li"],
  ...["thead", "tbody", "tr"],
]);
/** Of these, texts of their own, each in its own direction. */
const TEXTS = new Set(["p", "li", "blockquote"]);
/** @type {Record<string, string>} */
const HEADINGS = { h1: "h2", h2: "h3", h3: "h4", h4: "h5", h5: "h6", h6: "h6" };
/** @type {Record<string, (node: Element) => Props>} */
const KEPT = {
  ol: (node) => ({ start: node.getAttribute("start") }),
  pre: () => ({ tabindex: "0" }),
  table: () => ({ tabindex: "0" }),
  td: (node) => ({ dir: "auto", class: node.getAttribute("data-side") }),
  th: (node) => ({ dir: "auto", class: node.getAttribute("data-side") }),
};
const FORMULA = "tex-formula";

/** @import { Room } from "./room.js" */
/** @import MarkdownIt, { StateBlock, StateCore, StateInline } from "../../vendor/markdown-it/markdown-it.mjs" */

/** @type {Promise<MarkdownIt> | null} */
let parser = null;

/** Have the parser at hand before it is needed. */
export function loadMarkdown() {
  parser ??= import("../../vendor/markdown-it/markdown-it.mjs").then(({ default: Parser }) => {
    const made = new Parser({ html: false, linkify: true, breaks: true });
    const before = { alt: ["paragraph", "reference", "blockquote", "list"] };
    made.inline.ruler.before("escape", "formula", formulaWithin);
    made.block.ruler.before("fence", "formula", formulaAlone, before);
    made.core.ruler.push("aligned", aligned);
    made.renderer.rules.formula = (tokens, at) =>
      `<${FORMULA}>${made.utils.escapeHtml(tokens[at].content)}</${FORMULA}>`;
    return made;
  });
  return parser;
}

/**
 * A block with the text as Markdown; a very long one stays plain.
 *
 * @param {string} source
 * @param {Room} [room]
 */
export function markdown(source, room) {
  return folded(source, parsed, room);
}

/**
 * @param {string} source
 * @param {Room} room
 */
function parsed(source, room) {
  const block = el("div", { class: "payload-text", dir: "auto" }, source);
  if (source.length > LONGEST) return block;
  loadMarkdown()
    .then((found) => {
      const made = new DOMParser().parseFromString(found.render(source), "text/html");
      if (made.body.querySelectorAll("*").length > MOST_ELEMENTS) return;
      block.className = "payload-markdown";
      block.removeAttribute("dir");
      block.replaceChildren(...built(made.body, room));
    })
    // Without the parser the text is shown as it was written
    .catch(() => {});
  return block;
}

/* What the parser is taught */

/**
 * @param {StateInline} state
 * @param {boolean} silent
 */
function formulaWithin(state, silent) {
  const formula = formulaAt(state.src, state.pos);
  if (formula === null || state.pos + formula.source.length > state.posMax) return false;
  if (!silent) state.push("formula", "", 0).content = formula.source;
  state.pos += formula.source.length;
  return true;
}

/**
 * A formula on lines of its own, whatever its lines begin with.
 *
 * @param {StateBlock} state
 * @param {number} start
 * @param {number} end
 * @param {boolean} silent
 */
function formulaAlone(state, start, end, silent) {
  const first = state.src.slice(state.bMarks[start] + state.tShift[start], state.eMarks[start]);
  if (!/^(?:\$\$|\\\[)/.test(first)) return false;
  const close = first.startsWith("$") ? "$$" : "\\]";
  for (let line = start; line < Math.min(end, start + MOST_LINES); line += 1) {
    if (!state.src.slice(0, state.eMarks[line]).trimEnd().endsWith(close)) continue;
    const source = state.getLines(start, line + 1, state.blkIndent, false).trim();
    if (formulaAt(source, 0)?.source !== source) continue;
    if (silent) return true;
    const token = state.push("formula", "", 0);
    token.content = source;
    token.map = [start, line + 1];
    state.line = line + 1;
    return true;
  }
  return false;
}

/**
 * How the cells of a table stand, without a style.
 *
 * @param {StateCore} state
 */
function aligned({ tokens }) {
  for (const token of tokens) {
    const style = token.attrGet("style");
    if (style !== null) token.attrs = [["data-side", style.replace("text-align:", "")]];
  }
}

/* What is shown of what it finds */

/**
 * @param {Node} parent
 * @param {Room} room
 * @returns {Node[]}
 */
function built(parent, room) {
  return Array.from(parent.childNodes, (node) => one(node, room)).flat();
}

/**
 * @param {Node} node
 * @param {Room} room
 * @returns {Node[]}
 */
function one(node, room) {
  if (node instanceof Text) return [document.createTextNode(node.data)];
  if (!(node instanceof Element)) return [];
  const tag = node.localName;
  if (tag === FORMULA) return [shownFormula(node.textContent ?? "", room)];
  const inside = () => built(node, room);
  if (tag === "img")
    return [pictureIn(room, node.getAttribute("src") ?? "", node.getAttribute("alt") ?? "")];
  if (tag === "a") return [link(node, inside())];
  if (tag in HEADINGS) return [el(HEADINGS[tag], { dir: "auto" }, inside())];
  if (tag in KEPT) return [el(tag, KEPT[tag](node), inside())];
  return PLAIN.has(tag) ? [el(tag, TEXTS.has(tag) ? { dir: "auto" } : {}, inside())] : inside();
}

/**
 * @param {string} source
 * @param {Room} room
 */
function shownFormula(source, room) {
  const found = formulaAt(source, 0);
  return found === null ? document.createTextNode(source) : formulaView(found, room);
}

/**
 * @param {Element} node
 * @param {Node[]} children
 */
function link(node, children) {
  const target = node.getAttribute("href") ?? "";
  if (!/^(https|mailto):/i.test(target)) return el("span", {}, children);
  return el("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, children);
}
