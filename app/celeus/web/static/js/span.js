/* An interval on its scale, as a small bar. */

import { el } from "./dom.js";
import { lowerEnd, resolutionOf, scaleOf, upperEnd } from "./format.js";

const LEAST_PERCENT = 0.8;

/**
 * The bar of a session's interval with its estimate.
 *
 * @param {Session} session
 */
export function span(session) {
  const scale = scaleOf(session);
  const at = (/** @type {number} */ value) =>
    (100 * (value - scale.lower)) / (scale.upper - scale.lower);
  const lower = at(session.lower);
  const width = Math.max(at(session.upper) - lower, LEAST_PERCENT);
  const middle = `${at(session.estimate)}%`;
  return [
    el(
      "svg",
      { class: "span", role: "img", "aria-label": told(session, scale) },
      el("line", { class: "scale", x1: "0%", x2: "100%", y1: "50%", y2: "50%" }),
      el("line", { class: "scale", x1: "0%", x2: "0%", y1: "25%", y2: "75%" }),
      el("line", { class: "scale", x1: "100%", x2: "100%", y1: "25%", y2: "75%" }),
      el("rect", {
        class: "within",
        x: `${Math.min(lower, 100 - width)}%`,
        width: `${width}%`,
        y: "25%",
        height: "50%",
        rx: 2,
      }),
      el("line", { class: "at", x1: middle, x2: middle, y1: "25%", y2: "75%" }),
    ),
    el(
      "span",
      { class: "span-ends", "aria-hidden": "true" },
      el("span", {}, trimmed(scale.lower)),
      el("span", {}, trimmed(scale.upper)),
    ),
  ];
}

/**
 * @param {Session} session
 * @param {Scale} scale
 */
function told(session, scale) {
  const { lower, upper } = session;
  const width = resolutionOf(session);
  return `Interval from ${lowerEnd(lower, width)} to ${upperEnd(upper, width)}, on a scale from ${trimmed(scale.lower)} to ${trimmed(scale.upper)}`;
}

/** @param {number} value */
function trimmed(value) {
  return String(Number(value.toPrecision(4))).replace("-", "\u2212");
}
