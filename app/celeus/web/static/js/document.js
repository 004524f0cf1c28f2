/* A page of the documentation: blocks of code are copied by a button, on a small screen the
   navigation is folded until somebody asks for it, and the first page searches the headings. */

import { announce, byId, el } from "./dom.js";
import { counted } from "./format.js";

const SHOWN_MS = 2000;

for (const block of document.querySelectorAll("pre")) {
  const copy = el("button", { type: "button", class: "button small copy" }, "Copy");
  copy.addEventListener("click", async () => {
    const said = (await copied(block.textContent ?? "")) ? "Copied" : "Press Ctrl+C";
    copy.textContent = said;
    announce(said);
    setTimeout(() => {
      copy.textContent = "Copy";
    }, SHOWN_MS);
  });
  const around = el("div", { class: "code" });
  block.replaceWith(around);
  around.append(block, copy);
}

/**
 * Where the clipboard is out of reach, as without TLS, the text is marked to be copied by hand.
 *
 * @param {string} text
 */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

const wide = matchMedia("(min-width: 60rem)");
const fold = () => {
  byId("shelves", HTMLDetailsElement).open = wide.matches;
};
wide.addEventListener("change", fold);
fold();

const search = document.getElementById("search");
search?.addEventListener("submit", (event) => event.preventDefault());
search?.addEventListener("input", () => {
  const words = byId("words", HTMLInputElement).value.toLowerCase().split(/\s+/).filter(Boolean);
  const sections = /** @type {NodeListOf<HTMLElement>} */ (
    document.querySelectorAll("#sections > *")
  );
  const matches = [...sections].filter((section) => {
    const text = section.textContent.toLowerCase();
    section.hidden = words.length === 0 || !words.every((word) => text.includes(word));
    return !section.hidden;
  });
  byId("matches").textContent = words.length === 0 ? "" : counted(matches.length, "section");
});
