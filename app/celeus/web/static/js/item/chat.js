/* A chat in the forms that models and tools write it: who says what, and what tools were asked. */

import { el } from "../dom.js";
import { counted } from "../format.js";
import { markdown } from "./markdown.js";
import { pictures, sounds } from "./media.js";
import { isMembers, isMissing } from "./members.js";
import { grown, roomFor, several } from "./room.js";
import { json, text } from "./texts.js";

/** A call or a result of more characters is folded. */
const SHORT = 400;
const RESULT = 1_200;
/** Messages at the end of a long chat that are shown in any case. */
const LAST = 20;
/** What a model is told before anybody speaks. */
const PROMPTS = new Set(["system", "developer"]);
/** @import { Room } from "./room.js" */

/** @type {Record<string, string>} */
const ROLES = {
  ...{ human: "user", person: "user" },
  ...{ ai: "assistant", bot: "assistant", chatgpt: "assistant", gpt: "assistant" },
  ...{ model: "assistant", function_call: "assistant", reasoning: "assistant" },
  ...{ function: "tool", function_call_output: "tool", observation: "tool", ipython: "tool" },
};
/** Kinds of messages that say who speaks. */
const SPOKEN = new Set([
  "human",
  "ai",
  "system",
  "tool",
  "function_call",
  "function_call_output",
  "reasoning",
]);
/** @type {Record<string, string>} */
const TITLES = {
  ...{ user: "User", assistant: "Assistant", tool: "Tool result" },
  ...{ system: "System prompt", developer: "Developer prompt" },
};

/** @typedef {{ text?: string, thought?: string, image?: unknown, sound?: unknown, call?: Call, result?: Result, other?: unknown }} Part */
/** @typedef {{ name: string, said: unknown, id: string }} Call */
/** @typedef {{ of: string, said: unknown }} Result the id or the name of the call that it answers */
/** @typedef {{ role: string, name: string, parts: Part[] }} Message */

/**
 * The messages of a chat; null where a value is none.
 *
 * @param {unknown} value
 * @returns {Message[] | null}
 */
export function chatOf(value) {
  if (isMembers(value) && Array.isArray(value.messages)) return chatOf(value.messages);
  if (!Array.isArray(value) || value.length === 0) return null;
  if (!value.every((one) => isMembers(one) && roleOf(one) !== null && hasContent(one))) return null;
  /** @type {Map<string, string>} */
  const called = new Map();
  return value.map((one) => messageOf(one, called));
}

/**
 * The messages of a chat; those before the turn that is judged are folded.
 *
 * @param {Message[]} messages
 * @param {string} id of the item
 * @param {boolean} judged whether the last reply is what is judged
 * @param {Room} room
 * @returns {Child}
 */
export function chatView(messages, id, judged, room) {
  const roles = messages.map(({ role }) => role);
  const last = judged ? roles.lastIndexOf("assistant") : -1;
  // What tools answer may come as said by the user
  const begin = messages
    .slice(0, Math.max(0, last))
    .findLastIndex(({ role, parts }) => role === "user" && parts.some((part) => !part.result));
  const listed = (
    /** @type {number} */ from,
    /** @type {number} */ to,
    /** @type {Room} */ space,
  ) =>
    grown(
      el("div", { class: "payload-messages" }),
      messages.slice(from, to),
      space,
      (message, within, at) => messageView(message, id, from + at === last, within),
      { noun: "message", last: Math.min(LAST, to - from) },
    );
  // Prompts are folded by themselves
  const folds = roles.slice(0, Math.max(0, begin)).some((role) => !PROMPTS.has(role));
  return [
    folds && earlier(begin, () => listed(0, begin, roomFor())),
    listed(folds ? begin : 0, roles.length, room),
  ];
}

/**
 * So many messages, which are made when somebody unfolds them.
 *
 * @param {number} messages
 * @param {() => HTMLElement} make
 */
function earlier(messages, make) {
  const folded = el(
    "details",
    { class: "payload-earlier" },
    el("summary", {}, counted(messages, "earlier message")),
  );
  folded.addEventListener("toggle", () => folded.append(make()), { once: true });
  return folded;
}

/**
 * What was said last, in words.
 *
 * @param {Message[]} messages
 */
export function lastOf(messages) {
  return (
    messages
      .at(-1)
      ?.parts.flatMap((one) => one.text ?? [])
      .join(" ") ?? ""
  );
}

/**
 * @param {Message} message
 * @param {string} id
 * @param {boolean} last
 * @param {Room} room
 */
function messageView({ role, name, parts }, id, last, room) {
  const title = TITLES[role] ?? role;
  const titled = [
    el("bdi", {}, title),
    name !== "" && [" · ", el("code", {}, el("bdi", {}, name))],
  ];
  const body = several(parts, room, (part, within) => partView(part, id, within), "part");
  const kind = ["user", "assistant", "tool"].includes(role) ? role : "aside";
  if (PROMPTS.has(role))
    return el(
      "details",
      { class: "payload-message aside" },
      el("summary", { class: "eyebrow" }, titled),
      body,
    );
  return el(
    "section",
    { class: `payload-message ${kind}${last ? " last" : ""}` },
    el("h2", { class: "eyebrow" }, titled, last && ", the last reply"),
    body.length > 0 ? body : el("p", { class: "quiet-text" }, "Nothing was said."),
  );
}

/**
 * @param {Part} part
 * @param {string} id
 * @param {Room} room
 */
function partView(part, id, room) {
  if (part.text !== undefined) return markdown(part.text, room);
  if (part.thought !== undefined)
    return el(
      "details",
      { class: "payload-call" },
      el("summary", {}, "Thoughts"),
      text(part.thought, room),
    );
  if (part.image !== undefined) return pictures(part.image, id, room);
  if (part.sound !== undefined) return sounds(part.sound, room);
  if (part.call !== undefined) return callView(part.call, room);
  if (part.result !== undefined) return saidView(parsed(part.result.said), room);
  return json(part.other);
}

/**
 * @param {Call} call
 * @param {Room} room
 */
function callView({ name, said }, room) {
  const told = parsed(said);
  const short = (JSON.stringify(told) ?? "").length <= SHORT;
  return el(
    "details",
    { class: "payload-call", open: short },
    el("summary", {}, "Calls ", el("code", {}, el("bdi", {}, name))),
    isMissing(told) ? null : saidView(told, room),
  );
}

/**
 * @param {unknown} value
 * @param {Room} room
 */
function saidView(value, room) {
  return typeof value === "string" ? text(value, room, RESULT) : json(value, RESULT);
}

/**
 * What a text of JSON holds, where it is an object or a list; else the text.
 *
 * @param {unknown} said
 */
function parsed(said) {
  if (typeof said !== "string" || !/^\s*[[{]/.test(said)) return said;
  try {
    return JSON.parse(said);
  } catch {
    return said;
  }
}

/**
 * @param {Payload} one
 * @returns {string | null}
 */
function roleOf(one) {
  const { author } = one;
  const told = [
    ...[one.role, one.from, one.speaker, isMembers(author) ? author.role : author],
    SPOKEN.has(String(one.type)) ? one.type : null,
  ].find((role) => typeof role === "string" && role !== "");
  if (told === undefined) return null;
  const role = String(told);
  return ROLES[role.toLowerCase()] ?? (role.toLowerCase() in TITLES ? role.toLowerCase() : role);
}

/** @param {Payload} one */
function hasContent(one) {
  const members = ["content", "value", "text", "parts", "tool_calls", "function_call"];
  return [...members, "arguments", "output", "summary"].some((name) => name in one);
}

/**
 * @param {Payload} one
 * @param {Map<string, string>} called the names of calls by their ids, which this adds to
 * @returns {Message}
 */
function messageOf(one, called) {
  const role = roleOf(one) ?? "";
  const alone = one.type === "function_call" || one.type === "function_call_output";
  const content = alone ? one : firstOf(one, "content value text parts summary");
  const parts = contentOf(content).map((part) =>
    role === "tool" && part.text !== undefined ? { result: { of: "", said: part.text } } : part,
  );
  if (typeof one.refusal === "string") parts.push({ text: one.refusal });
  parts.push(...callsOf(one));
  for (const { call } of parts) if (call && call.id !== "") called.set(call.id, call.name);
  const of = parts.find((part) => part.result)?.result?.of ?? "";
  const answered = String(firstOf(one, "tool_call_id call_id") ?? of);
  const name = typeof one.name === "string" && !alone ? one.name : (called.get(answered) ?? of);
  return { role, name, parts };
}

/**
 * What a message of OpenAI's asks of tools, beside what it says.
 *
 * @param {Payload} one
 * @returns {Part[]}
 */
function callsOf(one) {
  const calls = [one.tool_calls ?? [], one.function_call ?? []].flat();
  return calls.map((call) => (isMembers(call) ? { call: callOf(call) } : { other: call }));
}

/**
 * The first of some members that is there.
 *
 * @param {Payload} members
 * @param {string} names
 */
function firstOf(members, names) {
  return (
    names
      .split(" ")
      .map((name) => members[name])
      .find((value) => !isMissing(value)) ?? null
  );
}

/** @param {unknown} content @returns {Part[]} */
function contentOf(content) {
  if (isMissing(content) || content === "") return [];
  return Array.isArray(content) ? content.flatMap(contentOf) : [partOf(content)];
}

/** @param {unknown} part @returns {Part} */
function partOf(part) {
  if (!isMembers(part)) return { text: String(part) };
  const kind = String(part.type ?? "");
  return mediumOf(part, kind) ?? toolOf(part, kind) ?? wordsOf(part, kind);
}

/**
 * @param {Payload} part
 * @param {string} kind
 * @returns {Part}
 */
function wordsOf(part, kind) {
  const thought = part.thinking ?? part.reasoning;
  if (typeof thought === "string") return { thought };
  if (kind === "summary_text" && typeof part.text === "string") return { thought: part.text };
  const told = part.text ?? part.refusal;
  return typeof told === "string" ? { text: told } : { other: part };
}

/**
 * @param {Payload} part
 * @param {string} kind
 * @returns {Part | null}
 */
function mediumOf(part, kind) {
  const sound = firstOf(part, "input_audio audio_url audio");
  if (sound !== null) return { sound };
  const image = firstOf(part, "image_url image");
  if (image !== null) return { image };
  const data = firstOf(part, "source inlineData inline_data");
  if (!isMembers(data)) return null;
  const medium = String(firstOf(data, "media_type mimeType mime_type") ?? "image/png");
  const source = data.url ?? `data:${medium};base64,${data.data}`;
  if (medium.startsWith("audio/")) return { sound: source };
  return kind === "image" || medium.startsWith("image/") ? { image: source } : null;
}

/**
 * @param {Payload} part
 * @param {string} kind
 * @returns {Part | null}
 */
function toolOf(part, kind) {
  const { functionCall, functionResponse: answered } = part;
  if (isMembers(functionCall)) return { call: callOf(functionCall) };
  if (["tool_use", "tool_call", "function_call"].includes(kind)) return { call: callOf(part) };
  if (isMembers(answered))
    return { result: { of: String(answered.name ?? ""), said: answered.response } };
  if (kind !== "tool_result" && kind !== "function_call_output") return null;
  const parts = contentOf(part.content ?? part.output);
  const words = parts.every((one) => one.text !== undefined);
  const said = words ? parts.map((one) => one.text).join("\n") : (part.content ?? part.output);
  return { result: { of: String(firstOf(part, "tool_use_id call_id") ?? ""), said } };
}

/** @param {Payload} call @returns {Call} */
function callOf(call) {
  const asked = isMembers(call.function) ? call.function : call;
  const said = firstOf(asked, "arguments input args");
  return { name: String(asked.name ?? "a tool"), said, id: String(call.id ?? call.call_id ?? "") };
}
