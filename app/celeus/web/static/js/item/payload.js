/* An item as its judge sees it. Whatever a payload holds, texts are shown as texts. */

import { el } from "../dom.js";
import { loadMarkdown, markdown } from "./markdown.js";

/** @typedef {NonNullable<Draw["left"]>} Answer */
/** @typedef {{ asked: boolean, depth: number, id: string }} Context */

const DEEPEST = 3;
const EXCERPT = 240;
const TINY = 64;
const SHOWN = [
  "instructions",
  "image",
  "text",
  "markdown",
  "messages",
  "question",
  "choices",
  "pair",
  "answer",
  "reference",
];
/** @type {Record<string, string>} */
const NAMES = { question: "Question", answer: "Answer", reference: "Reference" };

/**
 * The elements of a draw: its item, and of two answers the left and the right one below it; `asked`
 * says that choices are buttons already.
 *
 * @param {Draw} draw
 * @param {boolean} asked
 * @returns {Child}
 */
export function drawView({ item, left, right, answers: several }, asked) {
  const { id } = item;
  if (several) return [whole(item, asked), several.map((one, at) => numbered(one, at, id))];
  const answers = [left, right].flatMap((one) => (one && !isBare(one) ? [one] : []));
  const shared = isNothing(item.payload) && answers.length > 0 ? [] : whole(item, asked);
  if (answers.length === 0) return shared;
  const parts = [left, right].map((one) => (one ? answerView(one, id) : []));
  return [shared, sides(/** @type {[Child, Child]} */ (parts))];
}

/**
 * One of several answers, under its number.
 *
 * @param {Answer} told
 * @param {number} at
 * @param {string} id
 */
function numbered(told, at, id) {
  return el(
    "section",
    { class: "shown", "aria-label": `Answer ${at + 1}` },
    el("h2", { class: "eyebrow" }, `Answer ${at + 1}`),
    answerView(told, id),
  );
}

/**
 * @param {Item} item
 * @param {boolean} asked
 * @returns {Child}
 */
function whole({ id, payload }, asked) {
  if (isNothing(payload)) return [nothing(id)];
  try {
    return view(payload, { asked, depth: 0, id });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return [el("p", { class: "quiet-text" }, `Item ${id} is nested too deeply to be shown.`)];
  }
}

/**
 * @param {Answer} told
 * @param {string} id
 * @returns {Child}
 */
function answerView({ answer, payload }, id) {
  return [
    answer !== null && text(answer),
    !isNothing(payload) && whole({ index: 0, id, payload }, false),
    answer === null && isNothing(payload) && el("p", { class: "quiet-text" }, "No answer."),
  ];
}

/** @param {Answer} told */
function isBare({ answer, payload }) {
  return answer === null && isNothing(payload);
}

/** @param {unknown} payload */
function isNothing(payload) {
  if (payload === null || payload === undefined) return true;
  return isMembers(payload) && Object.keys(payload).length === 0;
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
  if (payload === null || payload === undefined) return `item ${id}, without content`;
  if (typeof payload === "string") return payload.slice(0, EXCERPT);
  if (!isMembers(payload)) return `item ${id}`;
  const told = ["question", "text", "markdown", "answer"].map((name) => payload[name]);
  const words = told.filter((one) => typeof one === "string").join(". ");
  if (words !== "") return words.slice(0, EXCERPT);
  const chat = Array.isArray(payload.messages) ? payload.messages.at(-1) : null;
  if (isMembers(chat) && typeof chat.content === "string") return chat.content.slice(0, EXCERPT);
  return "image" in payload ? `${altOf(payload.image) || "a picture"}, item ${id}` : `item ${id}`;
}

/**
 * Load beforehand what a draw will need when its turn comes.
 *
 * @param {Draw} draw
 */
export function prepare({ item, left, right }) {
  for (const one of [item, left, right]) if (one) load(one.payload);
}

/** @param {unknown} payload */
function load(payload) {
  if (!isMembers(payload)) return;
  if (JSON.stringify(Object.keys(payload)).includes("markdown") || "pair" in payload)
    loadMarkdown().catch(() => {});
  for (const one of [payload.image].flat()) {
    const address = addressOf(sourceOf(one));
    if (address !== null && !address.startsWith("data:")) new Image().src = address;
  }
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
  if (typeof value === "string") return [text(value)];
  if (!isMembers(value) || context.depth >= DEEPEST) return [json(value)];
  const inner = { ...context, depth: context.depth + 1 };
  const known = SHOWN.filter((name) => value[name] !== undefined && value[name] !== null);
  if (known.length === 0) return [json(value)];
  const parts = known.flatMap((name) => part(name, value[name], inner));
  const others = Object.entries(value).filter(([name]) => !SHOWN.includes(name));
  if (others.length > 0) {
    parts.push(
      el(
        "details",
        { class: "payload-more" },
        el("summary", {}, "More about this item"),
        json(Object.fromEntries(others)),
      ),
    );
  }
  return parts;
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
      return el(
        "div",
        { class: "payload-images" },
        [value].flat().map((one) => picture(sourceOf(one), altOf(one), context.id)),
      );
    case "markdown":
      return typeof value === "string" ? markdown(value, picture) : json(value);
    case "text":
      return text(typeof value === "string" ? value : String(JSON.stringify(value)));
    case "messages":
      return messages(value);
    case "choices":
      return context.asked ? [] : choices(value, context);
    case "pair":
      return pair(value, context);
    default:
      return el(
        "section",
        { class: `payload-${name}` },
        el("h2", { class: "eyebrow" }, NAMES[name]),
        view(plain(value), context),
      );
  }
}

/**
 * A chat: who says what, and at its end the reply that is judged.
 *
 * @param {unknown} value
 * @returns {Child}
 */
function messages(value) {
  if (
    !Array.isArray(value) ||
    !value.every((one) => isMembers(one) && typeof one.role === "string")
  )
    return json(value);
  const replies = value.map((one) => one.role === "assistant");
  const last = replies.lastIndexOf(true);
  return el(
    "div",
    { class: "payload-messages" },
    value.map(({ role, content }, at) =>
      el(
        "section",
        {
          class: `payload-message ${role === "user" ? "user" : ""}${role === "system" ? "system" : ""}${at === last ? "last" : ""}`,
        },
        el("h2", { class: "eyebrow" }, at === last ? `${role}, the last reply` : role),
        typeof content === "string" ? text(content) : json(content),
      ),
    ),
  );
}

/**
 * @param {unknown} value
 * @param {Context} context
 */
function choices(value, context) {
  if (!Array.isArray(value)) return json(value);
  return el(
    "ul",
    { class: "payload-choices" },
    value.map((one) => el("li", {}, view(plain(one), context))),
  );
}

/**
 * @param {unknown} value
 * @param {Context} context
 */
function pair(value, context) {
  if (!Array.isArray(value) || value.length !== 2) return json(value);
  const [left, right] = value.map((one) => view(plain(one), context));
  return sides([left, right]);
}

/** @param {[Child, Child]} parts */
function sides(parts) {
  return el(
    "div",
    { class: "payload-pair" },
    ["Left", "Right"].map((side, at) =>
      el("section", { class: "payload-side" }, el("h2", { class: "eyebrow" }, side), parts[at]),
    ),
  );
}

/** @param {string} value */
function text(value) {
  return el("div", { class: "payload-text" }, value);
}

/** @param {unknown} value */
function json(value) {
  return el("pre", { class: "payload-json", tabindex: "0" }, JSON.stringify(value, null, 2));
}

/**
 * @param {string} source
 * @param {string} alt
 * @param {string} [id]
 */
function picture(source, alt, id) {
  const address = addressOf(source);
  const frame = el("figure", { class: "payload-image" });
  if (address === null) {
    frame.append(
      broken("The address of this picture is not one that can be shown.", source.slice(0, EXCERPT)),
    );
    return frame;
  }
  const show = () => {
    const words = alt || (id === undefined ? "Picture" : `Picture of item ${id}`);
    const image = el("img", { alt: words, referrerpolicy: "no-referrer", decoding: "async" });
    image.addEventListener("error", () => {
      const again = el(
        "button",
        { type: "button", class: "button small", on: { click: show } },
        "Load again",
      );
      const where = address.startsWith("data:") ? "" : address.slice(0, EXCERPT);
      frame.replaceChildren(
        broken("This picture did not load. If you cannot judge without it, press U.", where),
        again,
      );
    });
    image.addEventListener("load", () =>
      image.classList.toggle("tiny", image.naturalWidth <= TINY),
    );
    image.src = address;
    frame.replaceChildren(image);
  };
  show();
  return frame;
}

/**
 * @param {string} words
 * @param {string} address
 */
function broken(words, address) {
  return el(
    "p",
    { class: "payload-broken" },
    words,
    address !== "" && el("span", { class: "quiet-text" }, ` ${address}`),
  );
}

/**
 * Addresses that a page may load a picture from, without opening anything else.
 *
 * @param {string} source
 */
function addressOf(source) {
  return /^(https?:\/\/|data:image\/)/i.test(source) ? source : null;
}

/** @param {unknown} image */
function sourceOf(image) {
  const source = isMembers(image) ? (image.src ?? image.url) : image;
  return typeof source === "string" ? source : "";
}

/** @param {unknown} image */
function altOf(image) {
  return isMembers(image) && typeof image.alt === "string" ? image.alt : "";
}

/** @param {unknown} value */
function plain(value) {
  return typeof value === "number" || typeof value === "boolean" ? String(value) : value;
}

/**
 * @param {unknown} value
 * @returns {value is Payload}
 */
function isMembers(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
