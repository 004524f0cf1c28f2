/* An interval on its scale, as a small bar. */

import { el } from "./dom.js";
import { current, lowerEnd, resolutionOf, telling, upperEnd } from "./format.js";

const LEAST_PERCENT = 0.8;

/**
 * An interval and its estimate, as they lie on a scale.
 *
 * @param {{ estimate: number, lower: number, upper: number }} interval
 * @param {{ lower: number, upper: number }} scale
 */
export function marks({ estimate, lower, upper }, scale) {
  const at = (/** @type {number} */ value) =>
    (100 * (value - scale.lower)) / (scale.upper - scale.lower);
  const start = at(lower);
  const width = Math.max(at(upper) - start, LEAST_PERCENT);
  const middle = `${at(estimate)}%`;
  return [
    el("rect", {
      class: "within",
      x: `${Math.min(start, 100 - width)}%`,
      width: `${width}%`,
      y: "25%",
      height: "50%",
      rx: 2,
    }),
    el("line", { class: "at", x1: middle, x2: middle, y1: "25%", y2: "75%" }),
  ];
}

/**
 * The bar of a session's interval with its estimate.
 *
 * @param {Session} session
 */
export function span(session) {
  const { scale } = session;
  const { shift, sign } = telling(session);
  const [least, most] = [scale.lower, scale.upper].map((end) => trimmed(end * 10 ** shift) + sign);
  return [
    el(
      "svg",
      { class: "span", role: "img", "aria-label": inWords(session, least, most) },
      el("line", { class: "scale", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
      el("line", { class: "scale", x1: "0%", x2: "0%", y1: "25%", y2: "75%" }),
      el("line", { class: "scale", x1: "100%", x2: "100%", y1: "25%", y2: "75%" }),
      ...marks(current(session), scale),
    ),
    el(
      "span",
      { class: "span-ends", "aria-hidden": "true" },
      el("span", {}, least),
      el("span", {}, most),
    ),
  ];
}

/**
 * @param {Session} session
 * @param {string} least
 * @param {string} most
 */
function inWords(session, least, most) {
  const { lower, upper } = current(session);
  const { shift, sign } = telling(session);
  const width = resolutionOf(session);
  return `Interval from ${lowerEnd(lower, width, shift)} to ${upperEnd(upper, width, shift)}${sign}, on a scale from ${least} to ${most}`;
}

/** @param {number} value */
function trimmed(value) {
  return String(Number(value.toPrecision(4))).replace("-", "\u2212");
}
