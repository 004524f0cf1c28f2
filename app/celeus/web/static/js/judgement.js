/* A round: its item as judges see it, beside all that was said of it. */

import { listen } from "./corrections.js";
import { byId, fill, given } from "./dom.js";
import { drawView } from "./item/payload.js";
import { watch } from "./silence.js";

/** @type {{ item: RoundHistory["item"], left: "a" | "b" | null }} */
const { item, left } = given("round");
const names = given("names");
const places = left === "b" ? /** @type {const} */ (["b", "a"]) : /** @type {const} */ (["a", "b"]);
const [first, second] = places.map((side) => item[side] ?? null);
const answers = item.answers ? Object.values(item.answers) : null;
const draw = { round: 0, item, left: first, right: second, answers, expires_at: "" };
/** @type {[string, string]} */
const titles = [`Left: ${names[places[0]]}`, `Right: ${names[places[1]]}`];
fill(byId("shown"), drawView(draw, false, 1, titles));
listen();
watch();
performance.mark("usable");
