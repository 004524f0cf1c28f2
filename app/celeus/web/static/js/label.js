/* The labelling page: one item after the other, by keyboard, mouse or thumb. */

import { api } from "./api.js";
import { announce, byId, given } from "./dom.js";
import { answersFor, same, wordsOf } from "./label/answers.js";
import { showBrief, turnBrief } from "./label/brief.js";
import { Link } from "./label/link.js";
import { keep, recalled } from "./label/memory.js";
import { showNotices } from "./label/notices.js";
import { HOLD_MS, Outbox } from "./label/outbox.js";
import { excerptOf, prepare } from "./item/payload.js";
import { cannotTell, keyLines } from "./label/lines.js";
import {
  flash,
  look,
  openAtJudged,
  showAnswers,
  showItem,
  showRest,
  showUnseen,
} from "./label/view.js";
import {
  askWhy,
  commentKey,
  commentSaid,
  openComment,
  showComment,
  whyKey,
} from "./label/words.js";
import { workerOf } from "./label/window.js";
import { watch } from "./silence.js";

const COUNT_MS = 30_000;
/** What a label is told that came after another person's: it changes nothing. */
const OVERTAKEN = { code: "round_not_held", detail: "" };
/** Letters that say something other than a judgement. */
const COMMANDS = new Set("cipuz");

/** @type {Task} */
const task = given("task");
const session = task.session.id;
const { name } = task.labeller;
const worker = workerOf(name);
const { stands } = task;
// Where the service takes nothing back, the last label waits for it here
const outbox = new Outbox(session, name, worker, stands ? HOLD_MS : 0);
const link = new Link(session, worker, outbox, task.lease_seconds, heard);
const memory = `celeus.last:${session}:${worker}`;

/** @typedef {{ draw: Draw, said: Judgement, amended?: boolean }} Last */

/** @type {Set<number>} */
const prepared = new Set();

/** @type {Draw | null} */
let current = null;
/** @type {Last | null} */
let last = recalled("sessionStorage", memory);
/** The round that was open before a reload. @type {number | null} */
const opened = recalled("sessionStorage", `${memory}:open`);
let revising = false;
/** @type {{ entry: Entry, problem: Refusal } | null} */
let refusal = null;
let passedOn = false;
let retold = false;
/** @type {number | null} since when the service is silent */
let silent = null;
let counted = task.labeller.labels;
/** @type {string | null} */
let spoken = null;

/* What the service says */

/** @param {LinkEvent} event */
function heard(event) {
  if (event.what === "sent" && event.entry.kind === "observe") observed(event);
  if (event.what === "refused") refused(event.entry, event.problem);
  if (event.what === "released") dropPassedOn();
  if (link.state === "closed" || link.archived) {
    [current, revising] = [null, false];
    outbox.letGo();
  }
  for (const draw of link.draws) {
    if (!prepared.has(draw.round)) prepare(draw);
    prepared.add(draw.round);
  }
  advance();
}

/** @param {Extract<LinkEvent, { what: "sent" }>} event */
function observed({ entry, answer: { receipt } }) {
  // It was sent while it was to be taken back, as nobody was there any longer
  if (stands && entry.round === last?.draw.round) revising = false;
  if (receipt?.duplicate) refused(entry, OVERTAKEN);
  else counted += 1;
  if (receipt?.replayed) recount();
}

/**
 * @param {Entry} entry
 * @param {Refusal} problem
 */
function refused(entry, problem) {
  refusal = { entry, problem };
  if (entry.round === last?.draw.round) forget();
}

/** Drop the item shown if it was given back and has gone to somebody else. */
function dropPassedOn() {
  const open = current?.round;
  if (open === undefined || outbox.rounds.has(open)) return;
  passedOn = link.draws.every((draw) => draw.round !== open);
  if (passedOn) current = null;
}

async function recount() {
  if (outbox.entries.length > 0 || link.line !== "up") return;
  try {
    /** @type {Task} */
    const now = await api("GET", `/v1/sessions/${session}/task`, undefined, { retry: 0 });
    counted = now.labeller.labels;
    if (now.instructions !== task.instructions) {
      task.instructions = now.instructions;
      retold = true;
      showBrief(task);
    }
    render();
  } catch {
    // The count is only told to please; the next one comes soon
  }
}

/* What the person does */

function shown() {
  return revising && last !== null ? last.draw : current;
}

/** @param {Draw} draw */
function formOf(draw) {
  return answersFor(task, draw);
}

/** @param {Judgement} told */
function judge(told) {
  const draw = shown();
  if (draw === null) return;
  const part = told.unjudgeable === undefined ? look() : null;
  if (part !== null) {
    announce(showUnseen(part));
    return;
  }
  // Which turn it is tells a retry from a second judgement
  const said = draw.turn ? { ...told, turn: draw.turn } : { ...told };
  const comment = commentSaid();
  // An empty one erases what was said before
  if (comment !== "" || (revising && last?.said.comment)) said.comment = comment;
  refusal = null;
  passedOn = retold = false;
  const words = wordsOf(said, formOf(draw));
  if (revising && last !== null) {
    revise(last, said);
  } else {
    outbox.add("observe", draw.round, said);
    last = { draw, said };
    current = null;
  }
  remember(memory, last);
  link.judged(draw.round);
  advance(`${words}. `);
}

/**
 * @param {Last} before
 * @param {Judgement} said
 */
function revise(before, said) {
  revising = false;
  // Also where the same is said again
  outbox.letGo();
  const other = !same(before.said, said);
  if (!other && (before.said.comment ?? "") === (said.comment ?? "")) return;
  const { round } = before.draw;
  // With another comment the first judgement is said again, or else the last correction
  const kind = other || before.amended ? "amend" : "comment";
  if (!outbox.replace(kind, round, said)) {
    outbox.add(kind, round, said);
    before.amended = kind === "amend";
  }
  before.said = said;
}

/** Whether the last label can be taken back: by the service, or before it is sent. */
function undoable() {
  if (last === null || revising || link.state === "closed") return false;
  return !stands || outbox.untold(last.draw.round) !== null;
}

function undo() {
  if (last === null || !undoable()) return;
  const entry = outbox.untold(last.draw.round);
  if (entry !== null) entry.until = Number.POSITIVE_INFINITY;
  revising = true;
  advance(
    `Back at the previous item, which you judged ${wordsOf(last.said, formOf(last.draw))}. Judge it again, or press Escape to keep that label. `,
  );
}

function keepLast() {
  revising = false;
  outbox.letGo();
  link.wakeUp();
  advance("Kept. ");
}

function pass() {
  if (current === null || revising || ofPanel() || link.state === "closed") return;
  const { round } = current;
  current = null;
  refusal = null;
  passedOn = retold = false;
  link.pass(round);
  advance("Passed on. ");
}

/** Whether turns are those of a panel's raters: they are nobody else's. */
function ofPanel() {
  return (task.rater ?? null) !== null;
}

/** @param {string} words */
function advance(words = "") {
  const judged = outbox.rounds;
  if (current !== null && judged.has(current.round)) current = null;
  const free = link.draws.filter((draw) => !judged.has(draw.round));
  current ??= free.find((draw) => draw.round === opened) ?? free[0] ?? null;
  render();
  const draw = shown();
  const saying = draw === null ? byId("rest").textContent : `Item: ${excerptOf(draw)}`;
  // What has been said already is not said again when a lease is renewed
  if (words !== "" || saying !== spoken) announce(words + saying);
  spoken = saying;
}

function render() {
  const draw = shown();
  const form = draw === null ? null : formOf(draw);
  const again = draw === null || byId("item").dataset.round !== String(draw.round);
  if (draw === null || form === null)
    showRest(link.state, link.lineNow(silent), task.rater, link.waiting);
  else showItem(draw, form, task.instructions);
  if (form !== null && again) {
    showAnswers(form, judge);
    openAtJudged();
  }
  if (draw !== null) showComment(draw.round, revising, (revising && last?.said.comment) || "");
  byId("item").classList.toggle("revising", revising);
  showOthers();
  byId("count").textContent = String(counted + outbox.labels);
  const revised = revising && last !== null ? wordsOf(last.said, formOf(last.draw)) : null;
  showNotices({ ...seen(draw), revised });
}

/** Show what can be done but judging. */
function showOthers() {
  byId("undo", HTMLButtonElement).disabled = !undoable();
  byId("pass", HTMLButtonElement).disabled = revising;
  if (task.best || task.metrics) byId("unjudgeable").hidden = true;
  if (ofPanel()) byId("pass").hidden = true;
  if (task.best || ofPanel()) byId("ways").hidden = true;
}

/** @param {Draw | null} draw */
function seen(draw) {
  const judging = draw !== null;
  const differed = (draw?.turn ?? 1) > 1;
  const back = judging && link.passed.has(draw.round);
  return { link, silent, outbox, refusal, passedOn, back, retold, judging, differed };
}

/* The label that may be taken back, also after a reload */

/**
 * @param {string} place
 * @param {unknown} value
 */
function remember(place, value) {
  // A payload too large to be kept can be taken back until the page is left
  if (!keep("sessionStorage", place, value)) keep("sessionStorage", place, null);
}

function forget() {
  last = null;
  revising = false;
  keep("sessionStorage", memory, null);
}

/* Keys */

/** @param {KeyboardEvent} event */
function pressed(event) {
  link.used();
  if (event.defaultPrevented || event.altKey) return;
  if (byId("why", HTMLDialogElement).open) {
    whyKey(event);
    return;
  }
  // A picture enlarged has the keys to itself
  if (document.querySelector("dialog[open]") !== null) return;
  const key = keyOf(event);
  const typing = targets(event, "input:not([type=range]), textarea");
  if (event.ctrlKey || event.metaKey) {
    if (key === "z" && !typing && !event.repeat) act(event, undo);
    return;
  }
  if (typing) typed(event, key);
  else command(event, key);
}

/**
 * @param {KeyboardEvent} event
 * @param {string} selector
 */
function targets({ target }, selector) {
  return target instanceof Element && target.matches(selector);
}

/** @param {KeyboardEvent} event */
function keyOf(event) {
  // Where the digits lie behind the shift key, their keys alone mean them too
  const digit = event.shiftKey ? null : /^Digit([0-9])$/.exec(event.code);
  if (digit !== null) return digit[1];
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

/**
 * @param {KeyboardEvent} event
 * @param {string} key
 */
function typed(event, key) {
  const { target } = event;
  if (!(target instanceof HTMLElement)) return;
  if (target.id === "comment") commentKey(event);
  else if (key === "Escape") act(event, () => target.blur());
  // Where classes are numbers, no letter can be meant for the field
  else if (target.inputMode === "numeric" && COMMANDS.has(key)) command(event, key);
}

/**
 * @param {KeyboardEvent} event
 * @param {string} key
 */
function command(event, key) {
  const draw = shown();
  const form = draw === null ? null : formOf(draw);
  // A key held down judges one item, not all that follow; only a slider goes on
  if (event.repeat && !(form?.kind === "lines" && key.startsWith("Arrow"))) {
    if (targets(event, "button")) event.preventDefault();
    return;
  }
  if (key === "z") act(event, undo);
  else if (key === "i") act(event, turnBrief);
  else if (key === "Escape" && revising) act(event, keepLast);
  else if (form !== null) answer(event, key, form);
}

/**
 * @param {KeyboardEvent} event
 * @param {string} key
 * @param {Form} form
 */
function answer(event, key, form) {
  if (key === "u") act(event, why);
  else if (key === "c") act(event, openComment);
  else if (key === "p") act(event, pass);
  else if (form.kind === "buttons") choose(event, key, form);
  else if (form.kind === "lines") say(event, key, form);
  else if (key.length === 1 && key !== " ") byId("class").focus();
}

/**
 * @param {KeyboardEvent} event
 * @param {string} key
 * @param {Buttons | Lines} form
 */
function choose(event, key, form) {
  const option = form.options?.find((one) => one.keys.includes(key));
  if (option === undefined || (key.startsWith("Arrow") && event.shiftKey)) return;
  act(event, () => judge(option.said));
  flash(key);
}

/**
 * @param {KeyboardEvent} event
 * @param {string} key
 * @param {Lines} form
 */
function say(event, key, form) {
  if (keyLines(key, targets(event, "button:not([aria-pressed=true]), a, summary")))
    event.preventDefault();
  else choose(event, key, form);
}

/**
 * @param {Event} event
 * @param {() => void} what
 */
function act(event, what) {
  event.preventDefault();
  what();
}

function why() {
  if (task.best || shown() === null) return;
  if (task.metrics) cannotTell();
  else askWhy((reason) => judge({ unjudgeable: reason }), revising || ofPanel() ? null : pass);
}

/* The beginning */

document.addEventListener("keydown", pressed);
for (const event of ["pointerdown", "pointermove", "wheel", "scroll", "timeupdate"])
  document.addEventListener(event, () => link.used(), { passive: true, capture: true });
document.addEventListener("scroll", look, { passive: true, capture: true });
window.addEventListener("pagehide", () => {
  remember(`${memory}:open`, current?.round ?? null);
  link.leave();
});
byId("notices").addEventListener("click", ({ target }) => {
  const button = target instanceof Element ? target.closest("button") : null;
  if (button?.dataset.do === "keep") keepLast();
  if (button?.dataset.do === "retry") link.retry();
});
byId("undo").addEventListener("click", undo);
byId("unjudgeable").addEventListener("click", why);
byId("pass").addEventListener("click", pass);
byId("comment-open").addEventListener("click", openComment);
// Signing in elsewhere would leave the item; the notice leads there when the person wants to
window.addEventListener("signed-out", (event) => event.preventDefault());
for (const event of ["online", "focus"]) window.addEventListener(event, () => link.retry());
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState !== "visible") return;
  outbox.adopt();
  link.retry();
  recount();
});
setInterval(recount, COUNT_MS);
watch((since) => {
  silent = since;
  if (since === null) link.wakeUp();
  render();
});
outbox.adopt();
showBrief(task);
render();
await link.run();
