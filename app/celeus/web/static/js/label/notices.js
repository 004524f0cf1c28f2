/* What the person should know of connection, sign-in and session: which notices of the page. */

import { byId, cloned, fill } from "../dom.js";
import { counted } from "../format.js";
import { clock } from "../silence.js";

/** @import { Link } from "./link.js" */
/** @import { Outbox } from "./outbox.js" */

/**
 * @typedef {object} Seen
 * @property {Link} link
 * @property {number | null} silent since when the service is
 * @property {Outbox} outbox
 * @property {{ entry: Entry, problem: Refusal } | null} refusal
 * @property {boolean} passedOn somebody else was given the item that was open
 * @property {boolean} back the item was passed on, and has come back
 * @property {boolean} retold the instructions are others than before
 * @property {boolean} judging
 * @property {boolean} differed two raters have judged the item, and not alike
 * @property {string | null} revised what the label to be taken back says
 */

/** @typedef {[name: string, slots?: Record<string, string>]} Notice */

/**
 * Show the notices for what is `seen`.
 *
 * @param {Seen} seen
 */
export function showNotices(seen) {
  const notices = noticesOf(seen);
  const place = byId("notices");
  const signature = JSON.stringify(notices);
  if (place.dataset.shown === signature) return;
  place.dataset.shown = signature;
  fill(
    place,
    notices.map(([name, slots]) => cloned(`notice-${name}`, slots)),
  );
}

/**
 * @param {Seen} seen
 * @returns {Notice[]}
 */
function noticesOf(seen) {
  const { link, outbox, refusal, revised } = seen;
  /** @type {Notice[]} */
  const found = revised === null ? [] : [["revised", { said: revised }]];
  found.push(...ofLine(seen));
  if (outbox.entries.length > 0 && !outbox.kept) found.push(["unkept"]);
  if (refusal !== null) {
    const { code, detail } = refusal.problem;
    found.push([isNotice(code) ? code : "refused", { detail }]);
  }
  /** @type {[boolean, string][]} */
  const others = [
    // How a label that is taken back comes to be here is known
    [revised === null && seen.passedOn, "passed"],
    [revised === null && seen.back, "back"],
    [revised === null && seen.differed, "differed"],
    [seen.retold, "retold"],
    [seen.judging && isNotice(link.state), link.state],
  ];
  for (const [holds, name] of others) if (holds) found.push([name]);
  for (const [name, count] of outbox.strangers()) {
    const waits = count === 1 ? "waits" : "wait";
    found.push(["stranger", { name, labels: `${counted(count, "label")} of “${name}” ${waits}` }]);
  }
  return found;
}

/** @param {string} name */
function isNotice(name) {
  return document.getElementById(`notice-${name}`) !== null;
}

/**
 * @param {Seen} seen
 * @returns {Notice[]}
 */
function ofLine({ link, silent, outbox }) {
  const line = link.lineNow(silent);
  if (line === "up") return [];
  const kept = counted(outbox.entries.length, "label");
  let safe = `${kept} ${kept === "1 label" ? "is" : "are"} stored in this browser and will be sent as soon as possible.`;
  if (line === "gone") safe = `${kept} stored in this browser, unsent.`;
  if (outbox.entries.length === 0) safe = "Nothing is lost.";
  if (line === "down" && silent !== null) return [["silent", { safe, since: clock(silent) }]];
  return [[line, { safe }]];
}
