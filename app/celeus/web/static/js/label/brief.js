/* What judges are told, beside the item: instructions and what the levels mean. */

import { byId, el, fill } from "../dom.js";
import { markdown } from "../item/markdown.js";
import { helpOf, levelWords } from "./answers.js";
import { keep, recalled } from "./memory.js";

const BESIDE = window.matchMedia("(min-width: 68rem)");

/** @typedef {Pick<Task, "session" | "instructions" | "levels">} Told */

/**
 * Show what there is to tell, folded as it was left; where nobody has folded or opened it, it is
 * open beside the item, and folded above it.
 *
 * @param {Told} told
 */
export function showBrief({ session, instructions, levels }) {
  const brief = byId("brief", HTMLDetailsElement);
  const helped = (levels ?? []).some((one) => one.help !== null);
  brief.hidden = !instructions && !helped;
  byId("room").classList.toggle("briefed", !brief.hidden);
  fill(
    byId("brief-text"),
    instructions ? markdown(instructions) : null,
    helped && levels
      ? el(
          "dl",
          { class: "rubric" },
          levels.map((one, at) => [
            el("dt", {}, levelWords(one)),
            el("dd", { id: helpOf(at) }, one.help),
          ]),
        )
      : null,
  );
  const unfold = () => {
    // Whoever follows a link to them wants to read them
    brief.open =
      location.hash === "#brief" ||
      (recalled("localStorage", placeOf(session.id)) ?? BESIDE.matches);
  };
  unfold();
  BESIDE.onchange = unfold;
  byId("brief-fold").onclick = () => {
    keep("localStorage", placeOf(session.id), !brief.open);
  };
}

/** Fold it, or open it. */
export function turnBrief() {
  if (!byId("brief").hidden) byId("brief-fold").click();
}

/** @param {string} session */
function placeOf(session) {
  return `celeus.brief:${session}:${BESIDE.matches ? "beside" : "above"}`;
}
