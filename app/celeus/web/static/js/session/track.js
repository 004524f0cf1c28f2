/* The interval round by round, as arrays that a chart takes; thinned when there are very many. */

const MOST_POINTS = 4_000;

/** Rounds with lower end, upper end and estimate, in order. */
export class Track {
  /** @type {number[]} */
  rounds = [];
  /** @type {number[]} */
  lower = [];
  /** @type {number[]} */
  upper = [];
  /** @type {number[]} */
  estimate = [];

  get length() {
    return this.rounds.length;
  }

  /** The last round; 0 before the first. */
  get last() {
    return this.rounds.at(-1) ?? 0;
  }

  /**
   * Take in what is new; `reset` replaces everything before.
   *
   * @param {TrajectoryPoint[]} points
   * @param {boolean} reset
   */
  take(points, reset) {
    if (reset) for (const column of this.#columns()) column.length = 0;
    const { last } = this;
    for (const point of points) {
      if (point.round <= last && !reset) continue;
      this.rounds.push(point.round);
      this.lower.push(point.lower);
      this.upper.push(point.upper);
      this.estimate.push(point.estimate);
    }
    if (this.length > MOST_POINTS) this.#thin();
  }

  /**
   * The round in which the interval was first as narrow as `precision`, or null.
   *
   * @param {number | null} precision
   */
  reached(precision) {
    if (precision === null) return null;
    const at = this.rounds.findIndex(
      (_, index) => this.upper[index] - this.lower[index] <= precision,
    );
    return at < 0 ? null : this.rounds[at];
  }

  /**
   * Indices of about `most` points, evenly, the last one among them.
   *
   * @param {number} most
   */
  some(most) {
    const step = Math.max(1, Math.ceil(this.length / most));
    const found = [];
    for (let index = this.length - 1; index >= 0; index -= step) found.push(index);
    return found.reverse();
  }

  #columns() {
    return [this.rounds, this.lower, this.upper, this.estimate];
  }

  #thin() {
    const last = this.length - 1;
    for (const column of this.#columns()) {
      const kept = column.filter((_, index) => (last - index) % 2 === 0);
      column.splice(0, column.length, ...kept);
    }
  }
}
