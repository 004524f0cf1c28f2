/* What can be said of an item whose judgement is several losses: one slider for every metric. */

const STEPS = 100;

/**
 * The form of a judgement that gives a loss for every metric, or says that nobody can tell it.
 *
 * @param {NonNullable<Task["metrics"]>} metrics
 * @returns {Slider}
 */
export function metricsFor(metrics) {
  const scales = metrics.map(({ kind, scale: [low, high] }) => ({
    low,
    high,
    step: kind === "zero_one" ? 1 : (high - low) / STEPS,
  }));
  return {
    kind: "scale",
    lines: metrics.map((one) => one.name),
    takes: "metrics",
    ...scales[0],
    scales,
    asked: false,
  };
}

/**
 * The judgement of the values, null where nobody can tell one.
 *
 * @param {Slider} form
 * @param {(number | null)[]} values
 * @returns {Judgement}
 */
export function vectorOf({ lines }, values) {
  return { losses: Object.fromEntries(lines.map((name, at) => [name, values[at]])) };
}

/**
 * A judgement in words.
 *
 * @param {Record<string, number | null>} losses
 */
export function vectorWords(losses) {
  const parts = Object.entries(losses).map(([name, loss]) => `${name} ${loss ?? "cannot be told"}`);
  return parts.join(", ");
}
