/* What the members of an item are, under whatever names the tools that wrote it give them. */

/** The names of each part in a payload, those before others that say more; in the order shown. */
const NAMES = Object.entries({
  instructions: "instructions rubric guidelines",
  image: "image images image_url picture pictures photo",
  audio: "audio audio_url sound recording",
  text: "text page_content",
  markdown: "markdown",
  chat: "messages conversation conversations chat dialog dialogue turns",
  question: "question prompt query user_input problem instruction input",
  context:
    "context contexts retrieved_contexts retrieval_context retrieved documents passages passage",
  choices: "choices",
  pair: "pair",
  answer:
    "answer response output completion prediction model_answer model_response model_output actual_output generated_answer generation reply",
  reference:
    "reference reference_answer expected expected_output expected_answer ground_truth gold gold_answer target ideal",
}).map(([part, names]) => /** @type {const} */ ([part, names.split(" ").map(simple)]));
const KNOWN = new Set(NAMES.flatMap(([, names]) => names));

/**
 * The parts of a payload by what they are, in the order in which they are shown. `beside` are
 * members that could be a part of which there is one already, `others` those of any other name.
 *
 * @param {Payload} payload
 */
export function partsOf(payload) {
  const entries = Object.entries(payload).filter(([, value]) => !isMissing(value));
  const known = entries.filter(([name]) => KNOWN.has(simple(name)));
  /** @type {Record<string, unknown>} */
  const parts = {};
  /** @type {Set<string>} */
  const taken = new Set();
  for (const [part, names] of NAMES) {
    const ranks = known
      .map(([name]) => ({ name, rank: names.indexOf(simple(name)) }))
      .filter(({ rank }) => rank >= 0)
      .sort((one, other) => one.rank - other.rank);
    if (ranks.length === 0) continue;
    taken.add(ranks[0].name);
    parts[part] = payload[ranks[0].name];
  }
  return {
    parts,
    beside: known.filter(([name]) => !taken.has(name)),
    others: entries.filter(([name]) => !KNOWN.has(simple(name))),
  };
}

/**
 * A draw whose item does not repeat the instructions that stand beside it.
 *
 * @param {Draw} draw
 * @param {string | null | undefined} instructions
 * @returns {Draw}
 */
export function lessInstructions(draw, instructions) {
  const { item } = draw;
  if (!instructions || !isMembers(item.payload)) return draw;
  const names = NAMES.find(([part]) => part === "instructions")?.[1] ?? [];
  const left = Object.entries(item.payload).filter(
    ([name, value]) =>
      !names.includes(simple(name)) ||
      typeof value !== "string" ||
      value.trim() !== instructions.trim(),
  );
  return { ...draw, item: { ...item, payload: Object.fromEntries(left) } };
}

/** @param {unknown} value */
export function isMissing(value) {
  return value === null || value === undefined;
}

/**
 * @param {unknown} value
 * @returns {value is Payload}
 */
export function isMembers(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {string} name */
function simple(name) {
  return name.toLowerCase().replace(/[\s_-]/g, "");
}
