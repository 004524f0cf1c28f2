/* How good the surrogate is: scores beside losses as a picture and a table. */

import { el } from "../dom.js";
import { count, counted, number } from "../format.js";

const SIZE = 340;
const LEFT = 56;
const BOTTOM = 40;
const TOP = 10;
const RIGHT = 12;
const TICKS = [0, 0.25, 0.5, 0.75, 1];
const STRONG = 0.5;
const WEAK = 0.2;

/**
 * What scores and losses are called: of two systems both are differences.
 *
 * `plain` is the loss without names, which an axis has no room for.
 *
 * @typedef {{ score: string, loss: string, plain: string, losses: string, over: string }} Words
 */

/**
 * @param {Contrast | null} contrast
 * @returns {Words}
 */
function wordsOf(contrast) {
  if (contrast === null)
    return {
      score: "score",
      loss: "loss",
      plain: "loss",
      losses: "losses",
      over: "of the pool",
    };
  return {
    score: "guessed difference",
    loss: `difference (${contrast.a} less ${contrast.b})`,
    plain: "difference",
    losses: "differences",
    over: "over the items that are asked for",
  };
}

/**
 * The verdict in words, the picture, and the table behind it.
 *
 * @param {Surrogate} surrogate
 * @param {Session} session
 * @param {"curve" | "strata"} by
 * @param {Contrast | null} contrast
 */
export function health(surrogate, session, by, contrast) {
  const parts = surrogate[by].length > 0 ? surrogate[by] : surrogate.curve;
  const told = parts.filter(isEstimated);
  const words = wordsOf(contrast);
  const both =
    contrast === null
      ? null
      : `A score here is what the surrogates say of ${contrast.a} less what they say of ${contrast.b}, below 0 where they find ${contrast.a} better.`;
  return [
    el("p", { class: "verdict" }, verdict(surrogate, words)),
    both === null ? null : el("p", { class: "quiet-text" }, both),
    told.length > 1 ? picture(told, surrogate, session, words) : null,
    told.length > 1 ? legend(surrogate, words) : null,
    el(
      "details",
      {},
      el("summary", {}, "Show as a table"),
      el(
        "div",
        {
          class: "table-scroll",
          tabindex: 0,
          role: "region",
          "aria-label": "Surrogate scores and losses",
        },
        table(parts, surrogate, by, words),
      ),
    ),
  ];
}

/** @typedef {SurrogatePart & { loss: number, low: number, high: number }} Estimated */

/**
 * @param {SurrogatePart} part
 * @returns {part is Estimated}
 */
function isEstimated(part) {
  return part.loss !== null;
}

/**
 * @param {Surrogate} surrogate
 * @param {Words} words
 */
function verdict({ labels, correlation, surrogate, loss, used, strata }, words) {
  if (!used) return "This policy draws uniformly and uses no surrogate.";
  if (labels === 0) return "Nothing is judged yet.";
  if (correlation === null)
    return `All ${words.score}s or all ${words.losses} so far are alike, so nothing can be said about how they agree.`;
  const learns = strata.length > 0;
  const reversed = learns
    ? "and the session uses them that way"
    : "which costs labels: this policy takes them as they are";
  const word =
    correlation >= STRONG
      ? `${words.score}s and ${words.losses} agree well`
      : correlation >= WEAK
        ? `${words.score}s and ${words.losses} agree somewhat`
        : correlation > -WEAK
          ? `${words.score}s say little about ${words.losses}`
          : `${words.score}s are high where ${words.losses} are low: they are upside down, ${reversed}`;
  const off =
    loss === null
      ? ""
      : ` The mean ${words.score} ${words.over} is ${number(surrogate)}, the mean ${words.loss} about ${number(loss)}${learns ? "; a shift like that is learned from the labels and costs little" : ""}.`;
  return `After ${counted(labels, "label")}, ${word} (correlation ${number(correlation)}).${off} A bad surrogate costs width, never validity: the interval holds either way.`;
}

/**
 * @param {Estimated[]} parts
 * @param {Surrogate} surrogate
 * @param {Session} session
 * @param {Words} words
 */
function picture(parts, surrogate, session, words) {
  const { scale } = session;
  const across = (/** @type {number} */ value) =>
    LEFT + ((value - scale.lower) / (scale.upper - scale.lower)) * (SIZE - LEFT - RIGHT);
  const along = (/** @type {number} */ value) =>
    SIZE - BOTTOM - ((value - scale.lower) / (scale.upper - scale.lower)) * (SIZE - BOTTOM - TOP);
  const largest = Math.max(...parts.map((part) => part.labels));
  const most = Math.max(...parts.map((part) => part.items));
  return el(
    "svg",
    {
      class: "health-figure",
      viewBox: `0 0 ${SIZE} ${SIZE}`,
      role: "img",
      "aria-label": heard(parts, words),
    },
    TICKS.map((tick) => {
      const value = scale.lower + tick * (scale.upper - scale.lower);
      return [
        el("line", {
          class: "grid-line",
          x1: across(value),
          x2: across(value),
          y1: TOP,
          y2: SIZE - BOTTOM,
        }),
        el("line", {
          class: "grid-line",
          x1: LEFT,
          x2: SIZE - RIGHT,
          y1: along(value),
          y2: along(value),
        }),
        el(
          "text",
          { x: across(value), y: SIZE - BOTTOM + 16, "text-anchor": "middle" },
          short(value),
        ),
        el("text", { x: LEFT - 7, y: along(value) + 4, "text-anchor": "end" }, short(value)),
      ];
    }),
    el("line", {
      class: "ideal",
      x1: across(scale.lower),
      y1: along(scale.lower),
      x2: across(scale.upper),
      y2: along(scale.upper),
    }),
    el(
      "text",
      { x: (LEFT + SIZE - RIGHT) / 2, y: SIZE - 6, "text-anchor": "middle" },
      words.score === "score" ? "surrogate score" : words.score,
    ),
    el(
      "text",
      {
        transform: `translate(11 ${(TOP + SIZE - BOTTOM) / 2}) rotate(-90)`,
        "text-anchor": "middle",
      },
      `${words.plain}, estimated from labels`,
    ),
    parts.map((part) => {
      const x = across(part.surrogate);
      return [
        el("line", { class: "limit", x1: x, x2: x, y1: along(part.low), y2: along(part.high) }),
        surrogate.used
          ? el("line", {
              class: "used",
              x1: x - 5,
              x2: x + 5,
              y1: along(part.used),
              y2: along(part.used),
            })
          : null,
        el("circle", {
          class: "dot",
          cx: x,
          cy: along(part.loss),
          r:
            2.5 +
            3.5 * Math.sqrt(part.labels / Math.max(largest, 1)) * Math.sqrt(part.items / most),
        }),
      ];
    }),
  );
}

/**
 * @param {Surrogate} surrogate
 * @param {Words} words
 */
function legend(surrogate, words) {
  const sample = (/** @type {Child[]} */ ...shapes) =>
    el("svg", { class: "health-figure", viewBox: "0 0 24 14", "aria-hidden": "true" }, ...shapes);
  const found = [
    [
      sample(
        el("line", { class: "limit", x1: 12, x2: 12, y1: 0, y2: 14 }),
        el("circle", { class: "dot", cx: 12, cy: 7, r: 4 }),
      ),
      `mean ${words.plain} with rough 95 % limits`,
    ],
    [
      sample(el("line", { class: "ideal", x1: 0, x2: 24, y1: 7, y2: 7 })),
      "where a perfect surrogate lies",
    ],
  ];
  if (surrogate.used)
    found.push([
      sample(el("line", { class: "used", x1: 6, x2: 18, y1: 7, y2: 7 })),
      "what the session bets with",
    ]);
  return el(
    "ul",
    { class: "key" },
    found.map(([shape, word]) => el("li", {}, shape, word)),
  );
}

/**
 * @param {SurrogatePart[]} parts
 * @param {Surrogate} surrogate
 * @param {"curve" | "strata"} by
 * @param {Words} words
 */
function table(parts, surrogate, by, words) {
  const heads = [
    by === "strata" ? "Stratum" : capital(`${words.score}s`),
    "Items",
    "Labels",
    `Mean ${words.score}`,
    `Mean ${words.loss}`,
    "Limits",
    "Bets with",
  ];
  const rows = parts.map((part, index) => {
    const range =
      part.least === part.largest
        ? short(part.least)
        : `${short(part.least)} – ${short(part.largest)}`;
    const limits =
      part.low === null || part.high === null ? "–" : `${number(part.low)} – ${number(part.high)}`;
    const cells = [
      count(part.items),
      count(part.labels),
      number(part.surrogate),
      part.loss === null ? "–" : number(part.loss),
      limits,
      surrogate.used ? number(part.used) : "–",
    ];
    return el(
      "tr",
      {},
      el("th", { scope: "row" }, by === "strata" ? `${index + 1}: ${range}` : range),
      cells.map((cell) => el("td", { class: "number" }, cell)),
    );
  });
  return el(
    "table",
    { class: "table" },
    el(
      "caption",
      {},
      `${capital(words.losses)} are estimated with weights that make up for how often items are drawn.`,
    ),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((head, index) =>
          el("th", { scope: "col", class: index > 0 ? "number" : null }, head),
        ),
      ),
    ),
    el("tbody", {}, rows),
  );
}

/**
 * @param {Estimated[]} parts
 * @param {Words} words
 */
function heard(parts, words) {
  const ends = [parts[0], parts[parts.length - 1]].map(
    (part) => `${words.score} ${number(part.surrogate)}: ${number(part.loss)}`,
  );
  const by = words.score === "score" ? "surrogate score" : words.score;
  return `Mean ${words.loss} by ${by}, in ${parts.length} parts; from ${ends[0]} to ${ends[1]}`;
}

/** @param {string} words */
function capital(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}`;
}

/** @param {number} value */
function short(value) {
  return String(Number(value.toPrecision(3))).replace("-", "\u2212");
}
