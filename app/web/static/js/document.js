/* A page of the documentation: blocks of code are copied by a button, and on a small screen the
   navigation is folded until somebody asks for it. */

import { announce, byId, el } from "./dom.js";

const SHOWN_MS = 2000;

for (const block of document.querySelectorAll("pre")) {
  const copy = el("button", { type: "button", class: "button small copy" }, "Copy");
  copy.addEventListener("click", async () => {
    const said = await copied(block.textContent) ? "Copied" : "Press Ctrl+C";
    copy.textContent = said;
    announce(said);
    setTimeout(() => { copy.textContent = "Copy"; }, SHOWN_MS);
  });
  const around = el("div", { class: "code" });
  block.replaceWith(around);
  around.append(block, copy);
}

/* Where the clipboard is out of reach, as without TLS, the text is marked to be copied by hand. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

const wide = matchMedia("(min-width: 60rem)");
const fold = () => { byId("shelves").open = wide.matches; };
wide.addEventListener("change", fold);
fold();
