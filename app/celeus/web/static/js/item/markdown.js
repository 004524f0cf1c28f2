/* Markdown as elements: parsed by markdown-it without HTML, built from a list of what may be there. */

import { el } from "../dom.js";

const LONGEST = 200_000;
const PLAIN = new Set([
  ...["p", "br", "hr", "em", "strong", "s", "code", "pre", "blockquote", "ul", "ol", "li"],
  ...["table", "thead", "tbody", "tr", "th", "td"],
]);
/** @type {Record<string, string>} */
const HEADINGS = { h1: "h2", h2: "h3", h3: "h4", h4: "h5", h5: "h6", h6: "h6" };

/** @typedef {(source: string, alt: string) => Node} Picture */
/** @import MarkdownIt from "../../vendor/markdown-it/markdown-it.mjs" */

/** @type {Promise<MarkdownIt> | null} */
let parser = null;

/** Have the parser at hand before it is needed. */
export function loadMarkdown() {
  parser ??= import("../../vendor/markdown-it/markdown-it.mjs").then(
    (module) => new module.default({ html: false, linkify: true, breaks: true }),
  );
  return parser;
}

/**
 * A block with the text as Markdown; a very long one stays plain. `picture` makes images.
 *
 * @param {string} text
 * @param {Picture} picture
 */
export function markdown(text, picture) {
  const block = el("div", { class: "payload-text" }, text);
  if (text.length > LONGEST) return block;
  loadMarkdown()
    .then((found) => {
      const parsed = new DOMParser().parseFromString(found.render(text), "text/html");
      block.className = "payload-markdown";
      block.replaceChildren(...built(parsed.body, picture));
    })
    // Without the parser the text is shown as it was written
    .catch(() => {});
  return block;
}

/**
 * @param {Node} parent
 * @param {Picture} picture
 * @returns {Node[]}
 */
function built(parent, picture) {
  return Array.from(parent.childNodes, (node) => one(node, picture)).flat();
}

/**
 * @param {Node} node
 * @param {Picture} picture
 * @returns {Node[]}
 */
function one(node, picture) {
  if (node instanceof Text) return [document.createTextNode(node.data)];
  if (!(node instanceof Element)) return [];
  const tag = node.localName;
  const inside = () => built(node, picture);
  if (tag === "img")
    return [picture(node.getAttribute("src") ?? "", node.getAttribute("alt") ?? "")];
  if (tag === "a") return [link(node, inside())];
  if (tag in HEADINGS) return [el(HEADINGS[tag], {}, inside())];
  if (tag === "ol") return [el("ol", { start: node.getAttribute("start") }, inside())];
  if (tag === "pre") return [el("pre", { tabindex: "0" }, inside())];
  if (PLAIN.has(tag)) return [el(tag, {}, inside())];
  return inside();
}

/**
 * @param {Element} node
 * @param {Node[]} children
 */
function link(node, children) {
  const target = node.getAttribute("href") ?? "";
  if (!/^(https?|mailto):/i.test(target)) return el("span", {}, children);
  return el("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, children);
}
