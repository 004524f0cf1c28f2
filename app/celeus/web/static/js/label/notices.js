/* What the person should know of connection, sign-in and session, in calm words. */

import { el } from "../dom.js";
import { clock } from "../silence.js";

/** @type {Record<string, string>} */
const REFUSED = {
  observation_conflict: "That item has another label already, and that one stands.",
  round_not_held:
    "Somebody else has judged that item meanwhile, or another key was given it. Your label is not needed.",
  session_closed:
    "The session was closed before your last label arrived, so it was not accepted. The session does not need it.",
  session_archived:
    "The session was archived before your last label arrived. The label is kept in this browser, and sent if the session is restored.",
  session_stopped:
    "The session has all the labels it needs by now, so your first label for that item stands. Whoever runs it can still correct it.",
  too_many_corrections:
    "That label was corrected too often. Whoever runs the session can still correct it.",
  not_last_label:
    "That label can no longer be undone here. Whoever runs the session can still correct it.",
};
/** @type {Record<string, string>} */
const STILL_TAKEN = {
  paused: "The session is paused. Your labels are still accepted.",
  target_reached: "The session has all the labels it needs. You may still judge this item.",
  decided: "The session has all the labels it needs. You may still judge this item.",
};

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
 *
 * @typedef {object} NoticeActions
 * @property {() => void} keep
 * @property {string} login
 * @property {() => void} retry
 */

/**
 * The notices for what is `seen`; `revised` is what the label to be taken back says.
 *
 * @param {Seen} seen
 * @param {string | null} revised
 * @param {NoticeActions} actions
 * @returns {Notice[]}
 */
export function noticesOf(
  { link, silent, outbox, refusal, passedOn, back, retold, judging, differed },
  revised,
  { keep, login, retry },
) {
  const kept = outbox.entries.length;
  /** @type {Notice[]} */
  const found = [];
  if (revised !== null) {
    const keeping = el(
      "button",
      { type: "button", class: "button small", on: { click: keep } },
      "Keep it ",
      el("kbd", {}, "Esc"),
    );
    found.push({
      words: `You judged this “${revised}”. Judge it again, or keep that label.`,
      action: keeping,
    });
  }
  found.push(...ofLine(link.lineNow(silent), silent, kept, { login, retry }));
  if (kept > 0 && !outbox.kept) {
    found.push({
      tone: "warning",
      words:
        "This browser stores nothing for this page. Keep the window open until everything is sent.",
    });
  }
  if (refusal !== null) {
    found.push({
      tone: "warning",
      words:
        REFUSED[refusal.problem.code] ??
        `The service did not accept your last label. ${refusal.problem.detail}`,
    });
  }
  found.push(...ofItem({ passedOn, back, differed }, revised));
  if (retold) found.push({ words: "The instructions have changed. Please read them again." });
  if (judging && link.state in STILL_TAKEN) found.push({ words: STILL_TAKEN[link.state] });
  for (const [name, count] of outbox.strangers()) {
    found.push({
      tone: "warning",
      words: `${labels(count)} of “${name}” ${count === 1 ? "waits" : "wait"} in this browser, unsent.`,
      action: el("a", { class: "button small", href: login }, `Sign in as ${name}`),
    });
  }
  return found;
}

/**
 * How the item comes to be here; of a label taken back that is known.
 *
 * @param {Pick<Seen, "passedOn" | "back" | "differed">} seen
 * @param {string | null} revised
 * @returns {Notice[]}
 */
function ofItem({ passedOn, back, differed }, revised) {
  if (revised !== null) return [];
  const told = [
    passedOn && "You were away, so the item you had open was passed on. Here is the next one.",
    back &&
      "You passed this item on, and nobody else has taken it. Judge it if you can, or pass it on again: then it waits for somebody for a while.",
    differed &&
      "You judged this item before, and another rater did not say the same. Look once more, and say what you find.",
  ];
  return told.flatMap((words) => (words ? [{ words }] : []));
}

/**
 * @param {Line} line
 * @param {number | null} silent
 * @param {number} kept
 * @param {Pick<NoticeActions, "login" | "retry">} actions
 * @returns {Notice[]}
 */
function ofLine(line, silent, kept, { login, retry }) {
  const safe =
    kept === 0
      ? "Nothing is lost."
      : `${labels(kept)} ${kept === 1 ? "is" : "are"} stored in this browser and will be sent as soon as possible.`;
  const signIn = el("a", { class: "button small primary", href: login }, "Sign in again");
  switch (line) {
    case "down":
      return [
        {
          tone: "warning",
          words:
            silent === null
              ? `The service cannot be reached. ${safe}`
              : `The service has not answered since ${clock(silent)}; trying again. ${safe}`,
          action: el(
            "button",
            { type: "button", class: "button small", on: { click: retry } },
            "Try now",
          ),
        },
      ];
    case "signed-out":
      return [
        {
          tone: "warning",
          words: `You are signed out: the key has expired or was revoked, or another key signed in. ${safe}`,
          action: signIn,
        },
      ];
    case "forbidden":
      return [
        {
          tone: "warning",
          words: `This browser may no longer judge here. ${safe}`,
          action: signIn,
        },
      ];
    case "gone":
      return [
        {
          tone: "warning",
          words: `There is no such session for your key: it was deleted, or another key signed in. ${
            kept === 0 ? "Nothing is lost." : `${labels(kept)} stored in this browser, unsent.`
          }`,
          action: signIn,
        },
      ];
    default:
      return [];
  }
}

/** @param {number} count */
function labels(count) {
  return count === 1 ? "1 label" : `${count} labels`;
}
