/* What the person should know of connection, sign-in and session, in calm words. */

import { el } from "../dom.js";

const REFUSED = {
  observation_conflict: "Somebody else has judged that item meanwhile; their label stands.",
  session_closed: "The session was closed before your last label came in, so it was not taken. Nothing is missing without it.",
  session_stopped: "The session has all the labels it needs by now, so your first label for that item stands. Whoever runs it can still correct it.",
  not_last_label: "That label can no longer be taken back from here. Whoever runs the session can still correct it.",
};
const STILL_TAKEN = {
  paused: "The session is paused. What you judge now is taken all the same.",
  target_reached: "The session has all the labels it needs. You may still judge this item.",
  decided: "The session has all the labels it needs. You may still judge this item.",
};

/** The notices for what is `seen`; `revised` is what the label to be taken back says. */
export function noticesOf({ link, outbox, refusal, judging }, revised, { keep, login, retry, adopt }) {
  const kept = outbox.entries.length;
  const found = [];
  if (revised !== null) {
    const back = el("button", { type: "button", class: "button small", on: { click: keep } }, "Keep it ", el("kbd", {}, "Esc"));
    found.push({ words: `You judged this “${revised}”. Judge it again, or keep that.`, action: back });
  }
  found.push(...ofLine(link.line, kept, { login, retry }));
  if (kept > 0 && !outbox.kept) {
    found.push({ tone: "warning", words: "This browser stores nothing for this page. Leave the window open until everything is sent." });
  }
  if (refusal !== null) {
    found.push({ tone: "warning", words: REFUSED[refusal.problem.code] ?? `The service did not take your last label. ${refusal.problem.detail}` });
  }
  if (judging && link.state in STILL_TAKEN) found.push({ words: STILL_TAKEN[link.state] });
  for (const [name, count] of outbox.strangers()) {
    const send = el("button", { type: "button", class: "button small", on: { click: () => adopt(name) } }, "Send as mine");
    found.push({ tone: "warning", words: `${labels(count)} of “${name}” ${count === 1 ? "waits" : "wait"} in this browser, unsent.`, action: send });
  }
  return found;
}

function ofLine(line, kept, { login, retry }) {
  const safe = kept === 0 ? "Nothing is lost." : `${labels(kept)} ${kept === 1 ? "is" : "are"} kept in this browser and sent as soon as that works.`;
  const signIn = el("a", { class: "button small primary", href: login }, "Sign in again");
  switch (line) {
    case "down":
      return [{ tone: "warning", words: `The service cannot be reached. ${safe}`, action: el("button", { type: "button", class: "button small", on: { click: retry } }, "Try now") }];
    case "signed-out":
      return [{ tone: "warning", words: `You are signed out here: the key has expired, was revoked, or another one signed in. ${safe}`, action: signIn }];
    case "forbidden":
      return [{ tone: "warning", words: `This browser may not judge here any more. ${safe}`, action: signIn }];
    case "gone":
      return [{ tone: "warning", words: `There is no such session for your key. ${safe}`, action: signIn }];
    default:
      return [];
  }
}

function labels(count) {
  return count === 1 ? "1 label" : `${count} labels`;
}
