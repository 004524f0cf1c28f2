/* Numbers and words as people read them. */

/**
 * What a session is called; one without a name by the end of its id.
 *
 * @param {Pick<Session, "id" | "name">} session
 */
export function nameOf(session) {
  return session.name ?? `Session ${session.id.slice(-8)}`;
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
 * How sure a claim is, never rounded up to certainty.
 *
 * @param {number} alpha
 */
export function sure(alpha) {
  const share = Number((100 * (1 - alpha)).toPrecision(15));
  return `${share > 99.9999 ? "more than 99.9999" : share}\u202f%`;
}
