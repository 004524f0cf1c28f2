/* What judges are told, as they will see it. */

import { byId, fill } from "../dom.js";
import { markdown } from "../item/markdown.js";
import { fieldValue, text } from "./fields.js";

/** Show what judges will be told: the instructions of the session, or those of its pool. */
export function previewInstructions() {
  const own = text("instructions") === "" ? null : fieldValue("instructions");
  const shown = own ?? byId("chosen").dataset.instructions ?? "";
  byId("instructions-look").hidden = shown === "";
  byId("instructions-whose").textContent =
    own === null ? "As judges will see them: those of the pool" : "As judges will see them";
  fill(byId("instructions-shown"), shown === "" ? null : markdown(shown));
}
