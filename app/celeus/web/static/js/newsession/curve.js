/* Labels and time by precision: the curve of a plan, on which a precision is chosen. */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { el, fill } from "../dom.js";
import { count } from "../format.js";

/** @type {[string, number][]} */
const UNITS = [
  ["hours", 3600],
  ["minutes", 60],
  ["seconds", 1],
];
const HEIGHT = 240;
const MARKS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8];
const TICKS = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]];
const FEW_TICKS = 3;

/** @typedef {{ policy: string, points: CurvePoint[] }} Line */

/**
 * The points of a policy's curve, from coarse to fine; none where it stops at its answers.
 *
 * @param {OpenPlan} plan
 */
export function pointsOf(plan) {
  return /** @type {CurvePoint[]} */ (plan.curve.filter((one) => one.precision !== null));
}

/**
 * Labels at a precision, on the straight line between two points on logarithmic scales; null beside
 * the curve.
 *
 * @param {CurvePoint[]} points
 * @param {number} precision
 * @returns {{ labels: Labels, reached: number, runs: number, simulated: boolean } | null}
 */
export function labelsAt(points, precision) {
  const next = points.findIndex((one) => one.precision <= precision * (1 + 1e-9));
  if (next === -1 || precision > points[0].precision * (1 + 1e-9)) return null;
  const fine = points[next];
  const same = Math.abs(fine.precision / precision - 1) < 1e-9;
  if (same) return { ...fine, simulated: !fine.extrapolated };
  const coarse = points[next - 1];
  const part = Math.log(coarse.precision / precision) / Math.log(coarse.precision / fine.precision);
  // No label is next to one on such a scale
  const between = (/** @type {keyof Labels} */ of) =>
    Math.round(Math.max(coarse.labels[of], 1) ** (1 - part) * Math.max(fine.labels[of], 1) ** part);
  return {
    labels: { median: between("median"), low: between("low"), high: between("high") },
    reached: Math.min(coarse.reached, fine.reached),
    runs: Math.min(coarse.runs, fine.runs),
    simulated: false,
  };
}

/** The chart in an element, with a slider below it; a choice on either is told to `choose`. */
export class Curve {
  #element = el("div", { class: "curve" });
  #slider = el("input", { type: "range", id: "curve-at", min: 0, step: 1 });
  /** @type {uPlot | null} */
  #plot = null;
  /** @type {Line[]} */
  #lines = [];
  /** @type {number[]} */
  #steps = [];
  #precision = 0;
  #seconds = 1;
  #choose;

  /** @param {(precision: number) => void} choose */
  constructor(choose) {
    this.#choose = choose;
    this.node = el(
      "figure",
      { class: "curve-figure" },
      el(
        "figcaption",
        { id: "curve-name" },
        "Labels by precision; finer to the right. Choose one on the curve.",
      ),
      this.#element,
      el("label", { class: "visually-hidden", for: "curve-at" }, "Precision on the curve"),
      this.#slider,
    );
    this.#slider.addEventListener("input", (event) => {
      // The form hears of the precision itself
      event.stopPropagation();
      this.#choose(this.#steps[Number(this.#slider.value)]);
    });
    new ResizeObserver(() => this.#plot?.setSize(this.#size())).observe(this.#element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /**
   * Draw the curves of policies, the chosen one first.
   *
   * @param {Line[]} lines
   * @param {number} precision
   * @param {number} seconds that a label takes
   */
  show(lines, precision, seconds) {
    this.#lines = lines;
    this.#seconds = seconds;
    this.#precision = precision;
    const { points } = lines[0];
    this.#steps = stepsOf(points);
    this.#slider.max = String(this.#steps.length - 1);
    this.#draw();
    this.at(precision);
  }

  /**
   * Mark a precision.
   *
   * @param {number} precision
   */
  at(precision) {
    this.#precision = precision;
    const nearest = this.#nearest(precision);
    this.#slider.value = String(nearest);
    this.#slider.setAttribute("aria-valuetext", this.#told(precision));
    this.#plot?.redraw(false);
  }

  /** @param {number} precision */
  #told(precision) {
    const found = labelsAt(this.#lines[0].points, precision);
    if (found === null) return `${precision}, beside the curve`;
    const { median, low, high } = found.labels;
    return `${precision}: about ${count(median)} labels, ${count(low)} to ${count(high)}`;
  }

  /** @param {number} precision */
  #nearest(precision) {
    const off = this.#steps.map((one) => Math.abs(Math.log(one / precision)));
    return off.indexOf(Math.min(...off));
  }

  #size() {
    return { width: Math.max(this.#element.clientWidth, 120), height: HEIGHT };
  }

  #draw() {
    this.#plot?.destroy();
    fill(this.#element);
    if (this.#lines.length === 0) return;
    const colour = colours();
    const [chosen, ...others] = this.#lines;
    const width = [...chosen.points].reverse();
    const of = (/** @type {Line} */ line, /** @type {keyof Labels} */ which) =>
      width.map(({ precision }) => labelsAt(line.points, precision)?.labels[which] ?? null);
    const axis = {
      stroke: colour.muted,
      grid: { stroke: colour.grid, width: 1 },
      ticks: { stroke: colour.grid, width: 1 },
      font: `12px ${colour.font}`,
      labelFont: `12px ${colour.font}`,
      labelSize: 18,
      labelGap: 0,
      /** @type {(u: uPlot, at: number, min: number, max: number) => number[]} */
      splits: (_, _at, min, max) => ticksOf(min, max),
      /** @type {(u: uPlot, splits: number[]) => number[]} */
      filter: (_, splits) => splits,
    };
    const hidden = { show: false };
    const longest = this.#seconds * Math.max(...chosen.points.map(({ labels }) => labels.high));
    const [unit, second] = UNITS.find(([, seconds]) => longest >= 2 * seconds) ?? UNITS[2];
    const times = this.#seconds / second;
    this.#plot = new uPlot(
      {
        ...this.#size(),
        legend: hidden,
        padding: [8, 0, 0, 0],
        cursor: { show: false },
        scales: {
          x: { time: false, distr: 3, dir: -1, range: (_, min, max) => [min, max] },
          y: { distr: 3, range: (_, min, max) => [min / 1.15, max * 1.15] },
          time: { distr: 3, from: "y", range: (_, min, max) => [min * times, max * times] },
        },
        axes: [
          { ...axis, label: "width of the interval", size: 30, values: (_, at) => at.map(short) },
          { ...axis, label: "labels", size: 44, values: (_, at) => at.map(brief) },
          {
            ...axis,
            label: unit,
            scale: "time",
            side: 1,
            size: 48,
            grid: hidden,
            values: (_, at) => at.map(brief),
          },
        ],
        series: [
          {},
          { stroke: "transparent", points: hidden },
          { stroke: "transparent", points: hidden },
          { stroke: colour.chosen, width: 2, points: { show: true, size: 6 } },
          ...others.map((_, at) => ({
            stroke: at === 0 ? colour.other : colour.third,
            width: 2,
            dash: at === 0 ? [6, 4] : [2, 3],
            points: hidden,
          })),
        ],
        bands: [{ series: [1, 2], fill: colour.band }],
        hooks: { draw: [(plot) => this.#mark(plot, colour)] },
      },
      [
        width.map((one) => one.precision),
        of(chosen, "high"),
        of(chosen, "low"),
        of(chosen, "median"),
        ...others.map((line) => of(line, "median")),
      ],
      this.#element,
    );
    const { root, over } = this.#plot;
    root.setAttribute("role", "img");
    root.setAttribute("aria-label", "Labels by precision; the numbers are in the table below.");
    over.addEventListener("pointerdown", (event) => {
      over.setPointerCapture(event.pointerId);
      this.#point(event);
    });
    over.addEventListener("pointermove", (event) => {
      if (over.hasPointerCapture(event.pointerId)) this.#point(event);
    });
  }

  /** @param {PointerEvent} event */
  #point(event) {
    if (this.#plot === null) return;
    const left = event.clientX - this.#plot.over.getBoundingClientRect().left;
    this.#choose(this.#steps[this.#nearest(this.#plot.posToVal(left, "x"))]);
  }

  /**
   * The precision that is chosen, and what it takes.
   *
   * @param {uPlot} plot
   * @param {ReturnType<typeof colours>} colour
   */
  #mark(plot, colour) {
    const found = labelsAt(this.#lines[0].points, this.#precision);
    if (found === null) return;
    const { ctx, bbox: box } = plot;
    const at = plot.valToPos(this.#precision, "x", true);
    const [low, median, high] = [found.labels.low, found.labels.median, found.labels.high].map(
      (one) => plot.valToPos(one, "y", true),
    );
    ctx.save();
    ctx.strokeStyle = colour.mark;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(at, box.top);
    ctx.lineTo(at, box.top + box.height);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.lineWidth = 3 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(at, low);
    ctx.lineTo(at, high);
    ctx.stroke();
    ctx.fillStyle = colour.mark;
    ctx.strokeStyle = colour.surface;
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.beginPath();
    ctx.arc(at, median, 6 * devicePixelRatio, 0, 2 * Math.PI);
    ctx.fill();
    ctx.stroke();
    ctx.restore();
  }
}

/**
 * Precisions that may be chosen on a curve, from coarse to fine: its own and round ones between.
 *
 * @param {CurvePoint[]} points
 */
function stepsOf(points) {
  const own = points.map((one) => one.precision);
  const round = ticksOf(own[own.length - 1], own[0], [MARKS]);
  return [...new Set([...own, ...round])].sort((one, other) => other - one);
}

/**
 * Round numbers from `min` to `max`, as many as a short axis has room for.
 *
 * @param {number} min
 * @param {number} max
 */
function ticksOf(min, max, choices = TICKS) {
  const from = Math.floor(Math.log10(min));
  const decades = Array.from(
    { length: Math.ceil(Math.log10(max)) - from + 1 },
    (_, at) => from + at,
  );
  /** @type {number[]} */
  let found = [];
  for (const marks of choices) {
    found = decades
      .flatMap((decade) => marks.map((one) => Number(`${one}e${decade}`)))
      .filter((one) => one >= min && one <= max);
    if (found.length >= FEW_TICKS) break;
  }
  return found;
}

/** @param {number} value */
function short(value) {
  return String(Number(value.toPrecision(3)));
}

/**
 * A number in little room: thousands by a k.
 *
 * @param {number} value
 */
function brief(value) {
  return value >= 1000 ? `${short(value / 1000)}k` : short(value);
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    chosen: value("--chart-1"),
    other: value("--chart-2"),
    third: value("--chart-3"),
    band: value("--chart-band"),
    muted: value("--muted"),
    grid: value("--chart-grid"),
    mark: value("--mark"),
    surface: value("--surface"),
    font: value("--sans") || "sans-serif",
  };
}
