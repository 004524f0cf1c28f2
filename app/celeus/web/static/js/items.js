/* Items as judges see them: those of a claim, or of one round. */

import { fill, given } from "./dom.js";
import "./forms.js";
import { drawView } from "./item/payload.js";
import { watch } from "./silence.js";

/** @type {{ draws: Draw[], crowd: number, heads: [string, string] | null }} */
const { draws, crowd, heads } = given("draws");
for (const [at, place] of document.querySelectorAll(".drawn").entries())
  fill(place, drawView(draws[at], false, crowd, heads ?? undefined));
const filter = document.querySelector("form#filter");
filter?.addEventListener("change", () => /** @type {HTMLFormElement} */ (filter).requestSubmit());
watch();
performance.mark("usable");
