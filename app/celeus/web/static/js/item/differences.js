/* The words in which two texts differ, marked in both when somebody asks for it. */

import { button, el } from "../dom.js";

const SHORTEST = 80;
const LONGEST = 50_000;
const PATIENCE_MS = 500;

/** Whether somebody asked for it at the last item: then it is so at the next, too. */
let wanted = false;

/**
 * A button that marks the words in which the texts of two sections differ; null where they are so
 * short that one sees it, or too long, or no texts.
 *
 * @param {[HTMLElement, HTMLElement]} sections whose last children show the texts
 * @param {[unknown, unknown]} texts
 */
export function differences(sections, texts) {
  const [one, other] = texts;
  if (typeof one !== "string" || typeof other !== "string") return null;
  if (![one, other].every(({ length }) => SHORTEST <= length && length <= LONGEST)) return null;
  const plain = sections.map((section) => /** @type {HTMLElement} */ (section.lastElementChild));
  const told = el("span", { class: "quiet-text", role: "status" });
  const mark = button(
    "Mark the words that differ",
    () => {
      wanted = !wanted;
      show().catch(failed);
    },
    { "aria-pressed": "false" },
  );
  const show = async () => {
    const asked = wanted;
    mark.setAttribute("aria-pressed", String(wanted));
    told.textContent = "";
    const marked = asked ? await markedOf(one, other) : null;
    // Another press may have come while the library was loaded
    if (asked !== wanted) return;
    if (asked && marked === null) told.textContent = "They differ too much to be marked.";
    else if (marked?.same) told.textContent = "They are the same, word for word.";
    sections.forEach((section, at) =>
      section.lastElementChild?.replaceWith(marked === null ? plain[at] : marked.texts[at]),
    );
  };
  const failed = () => {
    told.textContent = "What marks them could not be loaded.";
  };
  if (wanted) show().catch(failed);
  return el("div", { class: "payload-differences" }, mark, told);
}

/**
 * @param {string} one
 * @param {string} other
 */
async function markedOf(one, other) {
  const { diffWordsWithSpace } = await import("../../vendor/diff/diff/word.js");
  const parts = diffWordsWithSpace(one, other, { timeout: PATIENCE_MS });
  if (parts === undefined) return null;
  const side = (/** @type {"added" | "removed"} */ others) =>
    el(
      "div",
      { class: "payload-text", dir: "auto" },
      parts
        .filter((part) => !part[others])
        .map(({ added, removed, value }) =>
          (added || removed) && value.trim() !== "" ? el("mark", {}, value) : value,
        ),
    );
  return {
    texts: [side("added"), side("removed")],
    same: parts.every(({ added, removed, value }) => !(added || removed) || value.trim() === ""),
  };
}
