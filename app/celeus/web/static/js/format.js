/* Numbers and words as people read them. */

const MINUTE = 60_000;
const NOTHING_LEFT = 1e-9;
const RESOLUTION_OF_A_NUMBER = 10 ** -2.7;
const PERCENT = 2;

/**
 * What a session is called; one without a name by the end of its id.
 *
 * @param {Pick<Session, "id" | "name">} session
 */
export function nameOf(session) {
  return session.name ?? `Session ${session.id.slice(-8)}`;
}

/**
 * How what a session measures is told: the score of one system, a share of it in percent; of two
 * systems the difference as the losses have it, of shares in points.
 *
 * `at` gives the score of a loss and `ends` those of an interval's ends; figures have their point
 * moved by `shift`, and `sign` behind them; on an axis `tick`, as there is little room.
 *
 * @param {Session} session
 */
export function telling(session) {
  const score = session.systems ? null : session.score;
  const { lower, upper } = session.scale;
  const turned = score?.better === "higher";
  // A sum of decimals, and not of the floats beside them
  const at = (/** @type {number} */ loss) =>
    turned ? Number((lower + upper - loss).toPrecision(15)) : loss;
  const share = session.score?.unit === "share";
  const tick = share && score !== null ? "\u202f%" : "";
  return {
    at,
    /** @type {(low: number, high: number) => [number, number]} */
    ends: (low, high) => (turned ? [at(high), at(low)] : [low, high]),
    shift: share ? PERCENT : 0,
    sign: share && score === null ? " points" : tick,
    tick,
    name: score?.name ?? null,
    better: score?.better ?? "lower",
  };
}

/**
 * What a session is asked about its score, in words such as "at most 10 %", and where that is.
 *
 * @param {Session} session
 */
export function thresholdsOf(session) {
  const { at, better, shift, sign } = telling(session);
  return session.decisions.map((one) => {
    const side = (one.side === "at_most") === (better === "lower") ? "at most" : "at least";
    const place = at(one.threshold);
    const value = String(Number((place * 10 ** shift).toPrecision(10))).replace("-", "\u2212");
    return { place, words: `${side} ${value}${sign}`, ...one };
  });
}

/**
 * Estimate and interval of a session now, as `telling` has them.
 *
 * @param {Session} session
 */
export function current(session) {
  const { estimate, lower, upper } = (session.systems ? null : session.score) ?? session;
  return { estimate, lower, upper };
}

/**
 * A whole number with thin spaces between thousands.
 *
 * @param {number} value
 */
export function count(value) {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

/**
 * "1 label", "2 labels".
 *
 * @param {number} value
 * @param {string} noun
 */
export function counted(value, noun) {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/**
 * The width that decides how many decimals a session's figures have: its own, while it has one.
 *
 * @param {Pick<Session, "scale" | "width">} session
 */
export function resolutionOf(session) {
  const { lower, upper } = session.scale;
  return session.width > NOTHING_LEFT * (upper - lower)
    ? session.width
    : RESOLUTION_OF_A_NUMBER * (upper - lower);
}

/**
 * Two digits of `width`, three where the first is a 1; the report follows the same rules.
 *
 * @param {number} width
 */
function decimalsFor(width, shift = 0) {
  if (!(width > 0)) return 4;
  return Math.max(0, Math.ceil(1.3 - Math.log10(width) - shift));
}

/**
 * A number with the decimals that an interval of `width` deserves; `shift` moves its point to the
 * right, by 2 to tell a share in points.
 *
 * @param {number} value
 * @param {number} width
 */
export function number(value, width = 0.1, shift = 0) {
  return figure(value, width, shift, (steps, unit) => floor(2n * steps + unit, 2n * unit));
}

/**
 * The lower end of an interval: what is shown is never above it.
 *
 * @param {number} value
 * @param {number} width
 */
export function lowerEnd(value, width, shift = 0) {
  return figure(value, width, shift, floor);
}

/**
 * The upper end of an interval: what is shown is never below it.
 *
 * @param {number} value
 * @param {number} width
 */
export function upperEnd(value, width, shift = 0) {
  return figure(value, width, shift, (steps, unit) => -floor(-steps, unit));
}

/**
 * A number to the decimals of `width`, rounded as told, exactly.
 *
 * A number means the shortest decimal that reads back as it: 0.28 is 28 hundredths.
 *
 * @param {number} value
 * @param {number} width
 * @param {number} moved
 * @param {(numerator: bigint, denominator: bigint) => bigint} round
 */
function figure(value, width, moved, round) {
  const decimals = decimalsFor(width, moved);
  const [mantissa = "", exponent = "0"] = String(value).split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const shift = decimals + moved + Number(exponent) - fraction.length;
  const power = 10n ** BigInt(Math.abs(shift));
  const digits = BigInt(whole + fraction);
  const steps = shift < 0 ? round(digits, power) : digits * power;
  const sign = steps < 0n ? "\u2212" : "";
  const shown = String(steps < 0n ? -steps : steps).padStart(decimals + 1, "0");
  const point = shown.length - decimals;
  return sign + shown.slice(0, point) + (decimals > 0 ? `.${shown.slice(point)}` : "");
}

/**
 * A quotient rounded down; the division of whole numbers rounds to 0.
 *
 * @param {bigint} numerator
 * @param {bigint} denominator
 */
function floor(numerator, denominator) {
  const quotient = numerator / denominator;
  return numerator % denominator < 0n ? quotient - 1n : quotient;
}

/**
 * How sure a claim is, never rounded up to certainty.
 *
 * @param {number} alpha
 */
export function sure(alpha) {
  const share = Number((100 * (1 - alpha)).toPrecision(15));
  return `${share > 99.9999 ? "more than 99.9999" : share}\u202f%`;
}

/**
 * A share as a percentage.
 *
 * @param {number} share
 */
export function percent(share) {
  return `${Math.round(100 * share)}\u202f%`.replace("-", "\u2212");
}

/**
 * How long ago, in words.
 *
 * @param {number} then
 * @param {number} now
 */
export function ago(then, now = Date.now()) {
  const minutes = Math.round((now - then) / MINUTE);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${counted(minutes, "minute")} ago`;
  if (minutes < 60 * 36) return `${counted(Math.round(minutes / 60), "hour")} ago`;
  return `${counted(Math.round(minutes / 1440), "day")} ago`;
}
