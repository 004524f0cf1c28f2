/* An item as its judge sees it. Whatever a payload holds, texts are shown as texts. */

import { el } from "../dom.js";
import { chatOf, chatView, lastOf } from "./chat.js";
import { differences } from "./differences.js";
import { loadMarkdown, markdown } from "./markdown.js";
import { holdsMaths, loadMaths, waitingFormulas } from "./maths.js";
import { altOf, loadPictures, pictures, sounds } from "./media.js";
import { isMembers, isMissing, partsOf } from "./members.js";
import { grown, roomFor, several } from "./room.js";
import { json, text } from "./texts.js";

/** @typedef {NonNullable<Draw["left"]>} Answer */
/** @import { Room } from "./room.js" */
/** @typedef {{ asked: boolean, depth: number, id: string, judged: boolean, room: Room }} Context */

/** @type {[left: string, right: string]} */
const PLACES = ["Left", "Right"];

const DEEPEST = 3;
const EXCERPT = 240;
const DOCUMENT = 1_200;
/** What stands beside a picture where there is room. */
const ASKED = ["text", "markdown", "chat", "question", "context", "choices"];
/** @type {Record<string, string>} */
const NAMES = {
  question: "Question",
  context: "Context",
  answer: "Answer",
  reference: "Reference",
};

/**
 * The elements of a draw: its item, and of two answers the left and the right one below it, under
 * their `heads`; `asked` says that choices are buttons already. The answers share the room that the
 * item has, too, so that each of them shows as much of itself; and `crowd` items share it that are
 * on the page together.
 *
 * @param {Draw} draw
 * @param {boolean} asked
 * @param {number} [crowd]
 * @param {[left: string, right: string]} [heads]
 * @returns {Child}
 */
export function drawView(draw, asked, crowd = 1, heads = PLACES) {
  return [drawn(draw, asked, crowd, heads), waitingFormulas()];
}

/**
 * @param {Draw} draw
 * @param {boolean} asked
 * @param {number} crowd
 * @param {[left: string, right: string]} heads
 * @returns {Child}
 */
function drawn({ item, left, right, answers: many }, asked, crowd, heads) {
  const { id } = item;
  const room = roomFor(crowd);
  if (many) {
    const parts = many.map((one, at) => numbered(one, at, id, roomFor(crowd * many.length)));
    return [whole(item, asked, false, room), parts];
  }
  const answers = [left, right].flatMap((one) => (one && !isBare(one) ? [one] : []));
  const alone = answers.length === 0;
  const shared = isNothing(item.payload) && !alone ? [] : whole(item, asked, alone, room);
  if (alone) return shared;
  const parts = [left, right].map((one) => (one ? answerView(one, id, roomFor(crowd * 2)) : []));
  return [shared, sides(/** @type {[Child, Child]} */ (parts), heads)];
}

/**
 * One of several answers, under its number.
 *
 * @param {Answer} told
 * @param {number} at
 * @param {string} id
 * @param {Room} room
 */
function numbered(told, at, id, room) {
  return el(
    "section",
    { class: "shown", "aria-label": `Answer ${at + 1}` },
    el("h2", { class: "eyebrow" }, `Answer ${at + 1}`),
    answerView(told, id, room),
  );
}

/**
 * @param {Item} item
 * @param {boolean} asked
 * @param {boolean} judged whether what is judged is in the payload
 * @param {Room} room
 * @returns {Child}
 */
function whole({ id, payload }, asked, judged, room) {
  if (isNothing(payload)) return [nothing(id)];
  try {
    return view(payload, { asked, depth: 0, id, judged, room });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [el("p", { class: "quiet-text" }, `Item ${id} is nested too deeply to be shown.`)];
  }
}

/**
 * @param {Answer} told
 * @param {string} id
 * @param {Room} room
 * @returns {Child}
 */
function answerView({ answer, payload }, id, room) {
  return [
    answer !== null && text(answer, room),
    !isNothing(payload) && whole({ index: 0, id, payload }, false, answer === null, room),
    answer === null && isNothing(payload) && el("p", { class: "quiet-text" }, "No answer."),
  ];
}

/** @param {Answer} told */
function isBare({ answer, payload }) {
  return answer === null && isNothing(payload);
}

/** @param {unknown} payload */
function isNothing(payload) {
  return isMissing(payload) || (isMembers(payload) && Object.keys(payload).length === 0);
}

/**
 * The beginning of what is to be judged in words, for whoever listens.
 *
 * @param {Draw} draw
 */
export function excerptOf({ item, left, right, answers }) {
  const told = [
    ...(answers ?? []).map((one, at) => `Answer ${at + 1}: ${sayingOf(one, item.id)}`),
    left && `Left: ${sayingOf(left, item.id)}`,
    right && `Right: ${sayingOf(right, item.id)}`,
  ];
  return [beginningOf(item), ...told.filter(Boolean)].join(". ");
}

/**
 * @param {Answer} told
 * @param {string} id
 */
function sayingOf({ answer, payload }, id) {
  return answer?.slice(0, EXCERPT) ?? beginningOf({ index: 0, id, payload });
}

/** @param {Item} item */
function beginningOf({ id, payload }) {
  if (isMissing(payload)) return `item ${id}, without content`;
  if (typeof payload === "string") return payload.slice(0, EXCERPT);
  if (!isMembers(payload)) return `item ${id}`;
  const { parts } = partsOf(payload);
  const told = ["question", "text", "markdown", "answer"].map((name) => parts[name]);
  const words = told.filter((one) => typeof one === "string").join(". ");
  if (words !== "") return words.slice(0, EXCERPT);
  const said = lastOf(chatOf(parts.chat) ?? []);
  if (said !== "") return said.slice(0, EXCERPT);
  return "image" in parts ? `${altOf(parts.image) || "a picture"}, item ${id}` : `item ${id}`;
}

/**
 * Load beforehand what a draw will need when its turn comes.
 *
 * @param {Draw} draw
 */
export function prepare({ item, left, right, answers }) {
  const given = [left, right, ...(answers ?? [])].filter(Boolean);
  load(item.payload, roomFor());
  for (const one of given) load(one?.payload, roomFor(given.length));
  if (stringsIn([item.payload, left, right, answers]).some(holdsMaths)) loadMaths().catch(() => {});
}

/**
 * @param {unknown} value
 * @returns {string[]}
 */
function stringsIn(value) {
  /** @type {string[]} */
  const found = [];
  JSON.stringify(value, (_, one) => {
    if (typeof one === "string") found.push(one);
    return one;
  });
  return found;
}

/**
 * @param {unknown} payload
 * @param {Room} room
 */
function load(payload, room) {
  if (!isMembers(payload)) return;
  const { parts } = partsOf(payload);
  const within = JSON.stringify(Object.keys(payload)).includes("markdown") || "pair" in parts;
  if (within || Object.values(parts).some((value) => chatOf(value) !== null))
    loadMarkdown().catch(() => {});
  loadPictures(parts.image, room);
}

/** @param {string} id */
function nothing(id) {
  return el(
    "p",
    { class: "payload-none" },
    "This item has no content. Its id is ",
    el("code", {}, id),
    ".",
  );
}

/**
 * @param {unknown} value
 * @param {Context} context
 * @returns {Child[]}
 */
function view(value, context) {
  const { room } = context;
  if (typeof value === "string") return [text(value, room)];
  const chat = chatOf(value);
  if (chat !== null) return [chatView(chat, context.id, context.judged, room)].flat();
  if (!isMembers(value) || context.depth >= DEEPEST) return [json(value)];
  const { parts, beside, others } = partsOf(value);
  if (Object.keys(parts).length === 0) {
    if (context.depth > 0) return [json(value)];
    return several(
      others,
      room,
      (one, within) => named(one, { ...context, room: within }),
      "member",
    );
  }
  // Of an item with an answer that is what is judged, and not the last reply of its chat
  const judged = context.judged && !("answer" in parts) && !("pair" in parts);
  const inner = { ...context, depth: context.depth + 1, judged };
  const member = (/** @type {[string, unknown]} */ one, /** @type {Room} */ within) =>
    named(one, { ...inner, room: within });
  return [
    ...arranged(parts, inner),
    ...several(beside, room, member, "member"),
    others.length > 0 &&
      el(
        "details",
        { class: "payload-more" },
        el("summary", {}, "More about this item"),
        several(others, room, member, "member"),
      ),
  ];
}

/**
 * The parts in their order: pictures beside what is asked, the answer beside the reference.
 *
 * @param {Record<string, unknown>} parts
 * @param {Context} context
 * @returns {Child[]}
 */
function arranged(parts, context) {
  const shown = (/** @type {string[]} */ names) =>
    names.filter((name) => name in parts).map((name) => part(name, parts[name], context));
  // Choices that are buttons already are nothing to stand beside
  const asked = shown(ASKED).flat();
  const both = "answer" in parts && "reference" in parts;
  const answered = shown(["answer", "reference"]);
  return [
    shown(["instructions"]),
    "image" in parts && asked.length > 0
      ? el("div", { class: "payload-pictured" }, shown(["image"]), el("div", {}, asked))
      : [shown(["image"]), asked],
    shown(["audio", "pair"]),
    both
      ? [
          el("div", { class: "payload-beside" }, answered),
          differences(/** @type {[HTMLElement, HTMLElement]} */ (answered), [
            parts.answer,
            parts.reference,
          ]),
        ]
      : answered,
  ].flat();
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {Context} context
 * @returns {Child}
 */
function part(name, value, context) {
  switch (name) {
    case "instructions":
      return el("div", { class: "payload-instructions" }, view(value, context));
    case "image":
      return pictures(value, context.id, context.room);
    case "audio":
      return sounds(value, context.room);
    case "markdown":
      return typeof value === "string" ? markdown(value, context.room) : json(value);
    case "text":
      return text(typeof value === "string" ? value : String(JSON.stringify(value)), context.room);
    case "chat":
      return view(value, context);
    case "choices":
      return context.asked ? [] : choices(value, context);
    case "pair":
      return pair(value, context);
    default:
      return el(
        "section",
        { class: `payload-${name}` },
        el("h2", { class: "eyebrow" }, NAMES[name]),
        name === "context" ? documents(value, context) : listed(value, context),
      );
  }
}

/**
 * A member of a name that says nothing to the page, under that name.
 *
 * @param {[name: string, value: unknown]} member
 * @param {Context} context
 */
function named([name, value], context) {
  return el(
    "section",
    { class: "payload-named" },
    el("h2", { class: "eyebrow" }, el("bdi", {}, name)),
    view(plain(value), { ...context, depth: DEEPEST, judged: false }),
  );
}

/**
 * Texts that an answer rests on, each of them short at first.
 *
 * @param {unknown} value
 * @param {Context} context
 * @returns {Child}
 */
function documents(value, context) {
  const one = (/** @type {unknown} */ document, /** @type {Room} */ room) =>
    typeof document === "string"
      ? text(document, room, DOCUMENT)
      : view(plain(document), { ...context, room });
  if (!Array.isArray(value) || chatOf(value) !== null) return one(value, context.room);
  const list = el("ol", { class: "payload-documents" });
  const entry = (/** @type {unknown} */ it, /** @type {Room} */ room) =>
    el("li", {}, one(it, room));
  return grown(list, value, context.room, entry, { noun: "document" });
}

/**
 * What is one text, or several of them, any of which may be meant.
 *
 * @param {unknown} value
 * @param {Context} context
 * @returns {Child}
 */
function listed(value, context) {
  const texts = Array.isArray(value) && value.length > 0 && value.every((one) => isPlain(one));
  return texts ? choices(value, context) : view(plain(value), context);
}

/**
 * @param {unknown} value
 * @param {Context} context
 */
function choices(value, context) {
  if (!Array.isArray(value)) return json(value);
  const entry = (/** @type {unknown} */ one, /** @type {Room} */ room) =>
    el("li", {}, view(plain(one), { ...context, room }));
  const list = el("ul", { class: "payload-choices" });
  return grown(list, value, context.room, entry, { noun: "text" });
}

/**
 * @param {unknown} value
 * @param {Context} context
 */
function pair(value, context) {
  if (!Array.isArray(value) || value.length !== 2) return json(value);
  const [left, right] = value.map((one) =>
    view(plain(one), { ...context, judged: true, room: roomFor(2) }),
  );
  return sides([left, right]);
}

/**
 * @param {[Child, Child]} parts
 * @param {[left: string, right: string]} heads
 */
function sides(parts, heads = PLACES) {
  return el(
    "div",
    { class: "payload-pair" },
    heads.map((head, at) =>
      el(
        "section",
        { class: "payload-side" },
        el("h2", { class: "eyebrow" }, el("bdi", {}, head)),
        parts[at],
      ),
    ),
  );
}

/** @param {unknown} value */
function isPlain(value) {
  return ["string", "number", "boolean"].includes(typeof value);
}

/** @param {unknown} value */
function plain(value) {
  return typeof value === "number" || typeof value === "boolean" ? String(value) : value;
}
