/* Numbers and words as people read them. */

const STATES = {
  active: ["Active", "active"],
  target_reached: ["Precision reached", "reached"],
  decided: ["Decided", "reached"],
  budget_spent: ["Budget spent", ""],
  exhausted: ["Whole pool judged", ""],
  paused: ["Paused", ""],
  closed: ["Closed", ""],
};
const TARGETS = { pool: "mean loss of the pool", population: "mean loss of the population" };
const MINUTE = 60_000;

/** The word for a state, and the class of its badge. */
export function stateOf(session) {
  const [word, kind] = STATES[session.state] ?? [session.state, ""];
  return { word, kind };
}

/** What a session is called; one without a name by the end of its id. */
export function nameOf(session) {
  return session.name ?? `Session ${session.id.slice(-8)}`;
}

/** What the interval speaks of. */
export function targetOf(session) {
  return TARGETS[session.target] ?? session.target;
}

/** A whole number with thin spaces between thousands. */
export function count(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/** "1 label", "2 labels". */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Decimals that tell apart what lies within `width`. */
function decimalsFor(width) {
  if (!(width > 0)) return 4;
  return Math.min(8, Math.max(0, Math.ceil(1.3 - Math.log10(width))));
}

/** A number with the decimals that an interval of `width` deserves. */
export function number(value, width = 0.1) {
  return value.toFixed(decimalsFor(width)).replace("-", "\u2212");
}

/** The lower end of an interval: what is shown is never above it. */
export function lowerEnd(value, width) {
  return outwards(value, width, Math.floor);
}

/** The upper end of an interval: what is shown is never below it. */
export function upperEnd(value, width) {
  return outwards(value, width, Math.ceil);
}

function outwards(value, width, round) {
  const unit = 10 ** decimalsFor(width);
  // The last digits of a float are noise, which rounding outwards would make a whole step of
  const exact = Number((value * unit).toPrecision(14));
  return number(round(exact) / unit, width);
}

/** How sure a claim is, never rounded up to certainty. */
export function sure(alpha) {
  const share = Number((100 * (1 - alpha)).toPrecision(15));
  return `${share > 99.9999 ? "more than 99.9999" : share}\u202f%`;
}

/** A share as a percentage. */
export function percent(share) {
  return `${Math.round(100 * share)}\u202f%`.replace("-", "\u2212");
}

/** The scale of the losses; sessions older than its member show what they reached. */
export function scaleOf(session) {
  return session.scale ?? { lower: Math.min(0, session.lower), upper: Math.max(1, session.upper) };
}

/**
 * How far the width has come, from 0 to 1; null without a precision.
 *
 * Labels needed grow with the inverse square of the width, so that is what is shown.
 */
export function progressOf(session) {
  if (session.precision === null) return null;
  if (session.width <= session.precision) return 1;
  const { lower, upper } = scaleOf(session);
  const [there, here, begun] = [session.precision, session.width, upper - lower].map((width) => width ** -2);
  return Math.max(0, (here - begun) / (there - begun));
}

/** How long ago, in words. */
export function ago(then, now = Date.now()) {
  const minutes = Math.round((now - then) / MINUTE);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${counted(minutes, "minute")} ago`;
  if (minutes < 60 * 36) return `${counted(Math.round(minutes / 60), "hour")} ago`;
  return `${counted(Math.round(minutes / 1440), "day")} ago`;
}

/** A time of day. */
export function clock(date) {
  return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
