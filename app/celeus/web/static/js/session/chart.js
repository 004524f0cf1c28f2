/* The interval by labels: band, estimate, the precision asked for, the stop and the forecast. */

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { el, fill } from "../dom.js";
import {
  count,
  current,
  lowerEnd,
  number,
  resolutionOf,
  telling,
  thresholdsOf,
  upperEnd,
} from "../format.js";

const CLOSE_FROM_SHARE = 0.12;
const ROOM = 0.08;

/** @import { Track } from "./track.js" */
/** @typedef {ReturnType<typeof colours>} Colours */

/** The chart in an element; `show` draws what is known now. */
export class IntervalChart {
  #element;
  #readout;
  /** @type {uPlot | null} */
  #plot = null;
  #track;
  #session;
  #whole = false;
  #due = false;
  #course = { rounds: [0], lower: [0], upper: [0], estimate: [0] };

  /**
   * @param {HTMLElement} element
   * @param {HTMLElement} readout
   * @param {Track} track
   * @param {Session} session
   */
  constructor(element, readout, track, session) {
    this.#element = element;
    this.#readout = readout;
    this.#track = track;
    this.#session = session;
    new ResizeObserver(() => this.#fit()).observe(element);
    for (const other of ["(prefers-color-scheme: dark)", "print"])
      matchMedia(other).addEventListener("change", () => this.#renew());
  }

  /**
   * Draw the track of the session as it is now, soon.
   *
   * @param {Session} session
   */
  show(session) {
    this.#session = session;
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#draw();
    });
  }

  /**
   * Show the whole scale of the losses, or what the interval has come to.
   *
   * @param {boolean} whole
   */
  set whole(whole) {
    this.#whole = whole;
    if (this.#plot !== null) this.#draw();
  }

  #draw() {
    const nothing = this.#track.length === 0;
    if (nothing) {
      this.#plot?.destroy();
      this.#plot = null;
      fill(
        this.#element,
        el("p", { class: "nothing" }, "The chart begins with the first label in the interval."),
      );
      return;
    }
    this.#course = courseOf(this.#track, this.#session);
    const { rounds, upper, lower, estimate } = this.#course;
    this.#plot ??= this.#make();
    this.#plot.setData([rounds, upper, lower, estimate]);
    this.#plot.root.setAttribute("aria-label", this.#told() + this.#asked());
    this.#tell(this.#plot.cursor.idx);
  }

  #renew() {
    this.#plot?.destroy();
    this.#plot = null;
    this.#draw();
  }

  #make() {
    fill(this.#element);
    const colour = colours();
    const axis = {
      stroke: colour.muted,
      grid: { stroke: colour.grid, width: 1 },
      ticks: { stroke: colour.grid, width: 1 },
      font: `12px ${colour.font}`,
      labelFont: `12px ${colour.font}`,
      labelSize: 18,
      labelGap: 2,
    };
    const plot = new uPlot(
      {
        ...this.#size(),
        legend: { show: false },
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: {
          x: { time: false, range: () => this.#across() },
          y: { range: () => this.#along() },
        },
        axes: [
          {
            ...axis,
            values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? count(tick) : "")),
            space: 60,
            size: 32,
            label: "labels",
          },
          {
            ...axis,
            size: 58,
            label: nameOfAxis(this.#session),
            values: (_, ticks, _axis, _space, step) => {
              const { shift, tick: sign } = telling(this.#session);
              return ticks.map((tick) => number(tick, 10 * step, shift) + sign);
            },
          },
        ],
        series: [
          {},
          { stroke: colour.band1, width: 1.5, points: { show: false } },
          { stroke: colour.band1, width: 1.5, points: { show: false } },
          { stroke: colour.ink, width: 1.5, points: { show: false } },
        ],
        bands: [{ series: [1, 2], fill: colour.band }],
        hooks: {
          drawClear: [(drawn) => this.#behind(drawn, colours())],
          draw: [
            (drawn) => this.#thresholds(drawn, colours()),
            (drawn) => this.#before(drawn, colours()),
          ],
          setCursor: [(drawn) => this.#tell(drawn.cursor.idx)],
        },
      },
      [[], [], [], []],
      this.#element,
    );
    plot.root.setAttribute("role", "img");
    plot.over.addEventListener("click", () => {
      const { idx } = plot.cursor;
      const round = idx === null || idx === undefined ? 0 : this.#course.rounds[idx];
      if (round > 0) location.assign(roundPath(this.#session, round));
    });
    return plot;
  }

  #size() {
    return {
      width: Math.max(this.#element.clientWidth, 120),
      height: Math.max(this.#element.clientHeight, 120),
    };
  }

  #fit() {
    this.#plot?.setSize(this.#size());
  }

  /** @returns {uPlot.Range.MinMax} */
  #across() {
    const { forecast, stopped, round } = this.#session;
    const last = this.#track.last;
    const end =
      forecast !== null && !stopped
        ? Math.max(last, forecast.round + forecast.labels_left)
        : Math.max(last, round);
    return [0, Math.max(end * 1.02, 5)];
  }

  /** @returns {uPlot.Range.MinMax} */
  #along() {
    const { scale } = this.#session;
    if (this.#whole) return [scale.lower, scale.upper];
    const { rounds, lower, upper } = this.#course;
    const from = rounds.findIndex((round) => round >= CLOSE_FROM_SHARE * this.#track.last);
    let [least, most] = [lower[lower.length - 1], upper[upper.length - 1]];
    // The first labels leave the whole scale open; a close up begins where they have told something
    for (let index = Math.max(from, 0); index < rounds.length; index += 1) {
      least = Math.min(least, lower[index]);
      most = Math.max(most, upper[index]);
    }
    const asked = thresholdsOf(this.#session).map(({ place }) => place);
    for (const level of [...levelsOf(this.#session), ...asked]) {
      least = Math.min(least, level);
      most = Math.max(most, level);
    }
    const room = ROOM * (most - least) || 0.01;
    return [Math.max(least - room, scale.lower), Math.min(most + room, scale.upper)];
  }

  /**
   * @param {uPlot} plot
   * @param {Colours} colour
   */
  #behind(plot, colour) {
    const { precision, forecast, stopped } = this.#session;
    const { estimate } = current(this.#session);
    const { ctx } = plot;
    const box = plot.bbox;
    ctx.save();
    clip(ctx, box);
    const levels = levelsOf(this.#session).map((level) => plot.valToPos(level, "y", true));
    if (levels.length > 0) {
      const [bottom, zero, top] = levels;
      ctx.fillStyle = colour.goodBand;
      ctx.fillRect(box.left, top, box.width, bottom - top);
      line(ctx, [box.left, zero], [box.left + box.width, zero], colour.good, []);
    }
    if (precision !== null) {
      const top = plot.valToPos(estimate + precision / 2, "y", true);
      const bottom = plot.valToPos(estimate - precision / 2, "y", true);
      ctx.fillStyle = colour.markBand;
      ctx.fillRect(box.left, top, box.width, bottom - top);
      line(ctx, [box.left, top], [box.left + box.width, top], colour.mark, [6, 4]);
      line(ctx, [box.left, bottom], [box.left + box.width, bottom], colour.mark, [6, 4]);
    }
    if (forecast !== null && !stopped) {
      const at = plot.valToPos(forecast.round + forecast.labels_left, "x", true);
      line(ctx, [at, box.top], [at, box.top + box.height], colour.chart3, [2, 3]);
    }
    ctx.restore();
  }

  /**
   * The thresholds of the questions, each with its words.
   *
   * @param {uPlot} plot
   * @param {Colours} colour
   */
  #thresholds(plot, colour) {
    const { ctx } = plot;
    const box = plot.bbox;
    const unit = devicePixelRatio;
    ctx.save();
    clip(ctx, box);
    ctx.font = `600 ${12 * unit}px ${colour.font}`;
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    ctx.lineJoin = "round";
    for (const { place, words } of thresholdsOf(this.#session)) {
      const at = plot.valToPos(place, "y", true);
      line(ctx, [box.left, at], [box.left + box.width, at], colour.danger, [9, 3]);
      const beside = at - box.top > 20 * unit ? at - 9 * unit : at + 11 * unit;
      ctx.setLineDash([]);
      ctx.lineWidth = 4 * unit;
      ctx.strokeStyle = colour.surface;
      ctx.strokeText(words, box.left + box.width - 8 * unit, beside);
      ctx.fillStyle = colour.danger;
      ctx.fillText(words, box.left + box.width - 8 * unit, beside);
    }
    ctx.restore();
  }

  /**
   * @param {uPlot} plot
   * @param {Colours} colour
   */
  #before(plot, colour) {
    const { stopped, stop_reason: reason, precision } = this.#session;
    if (!stopped) return;
    const round =
      (reason === "target_reached" ? this.#track.reached(precision) : null) ?? this.#track.last;
    const { ctx } = plot;
    const box = plot.bbox;
    const at = plot.valToPos(round, "x", true);
    ctx.save();
    line(ctx, [at, box.top], [at, box.top + box.height], colour.ink, []);
    ctx.fillStyle = colour.ink;
    ctx.font = `600 ${12 * devicePixelRatio}px ${colour.font}`;
    ctx.textAlign = "right";
    ctx.textBaseline = "top";
    ctx.fillText("stop", at - 6 * devicePixelRatio, box.top + 4 * devicePixelRatio);
    ctx.restore();
  }

  /** @param {number | null | undefined} index */
  #tell(index) {
    if (index === null || index === undefined) {
      this.#readout.textContent = this.#told();
      return;
    }
    const { rounds, lower, upper, estimate } = this.#course;
    const width = upper[index] - lower[index];
    const how = telling(this.#session);
    const claim = said(estimate[index], lower[index], upper[index], width, how);
    this.#readout.textContent = `After ${count(rounds[index])} labels: ${claim} (width ${number(width, width, how.shift)}${how.shift ? " points" : ""})`;
  }

  #asked() {
    const asked = thresholdsOf(this.#session).map(({ words, answer }) => `${words}? ${answer}`);
    return asked.length === 0 ? "" : `. Asked: ${asked.join("; ")}`;
  }

  #told() {
    const { estimate, lower, upper } = current(this.#session);
    const claim = said(estimate, lower, upper, resolutionOf(this.#session), telling(this.#session));
    return `Now, after ${count(this.#session.round)} labels: ${claim}`;
  }
}

/**
 * What the upright axis measures; names of systems may be too long for it.
 *
 * @param {Session} session
 */
function nameOfAxis(session) {
  const { name, better, sign } = telling(session);
  if (session.systems || session.verdict) return `difference${sign && `,${sign}`}`;
  return `${name ?? "mean loss"} (${better} is better)`;
}

/**
 * Where two systems are compared: the margin below 0, 0, and the margin above.
 *
 * @param {Session} session
 */
function levelsOf({ systems, verdict }) {
  if (!systems && !verdict) return [];
  const width = verdict?.margin ?? 0;
  return [-width, 0, width];
}

/**
 * The track on the scale of the score.
 *
 * @param {Track} track
 * @param {Session} session
 */
function courseOf({ rounds, lower, upper, estimate }, session) {
  const { at, ends } = telling(session);
  const both = rounds.map((_, index) => ends(lower[index], upper[index]));
  return {
    rounds,
    lower: both.map(([low]) => low),
    upper: both.map(([, high]) => high),
    estimate: estimate.map(at),
  };
}

/**
 * The track as a table.
 *
 * @param {Track} track
 * @param {Session} session
 */
export function chartTable(track, session) {
  const { at, ends, shift, sign } = telling(session);
  const rows = track.some(40).map((index) => {
    const [lower, upper] = ends(track.lower[index], track.upper[index]);
    const width = upper - lower;
    const values = [
      number(at(track.estimate[index]), width, shift),
      lowerEnd(lower, width, shift),
      upperEnd(upper, width, shift),
      number(width, width, shift),
    ];
    return el(
      "tr",
      {},
      el(
        "th",
        { scope: "row", class: "number" },
        el("a", { href: roundPath(session, track.rounds[index]) }, count(track.rounds[index])),
      ),
      values.map((value) => el("td", { class: "number" }, value)),
    );
  });
  const unit = sign && `,${sign}`;
  const heads = [
    "Labels",
    ...["Estimate", "Lower end", "Upper end", "Width"].map((it) => it + unit),
  ];
  return el(
    "table",
    { class: "table" },
    el(
      "caption",
      {},
      track.length > rows.length
        ? `${rows.length} of ${count(track.last)} rounds, evenly spaced`
        : "Every round",
    ),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((head) => el("th", { scope: "col", class: "number" }, head)),
      ),
    ),
    el("tbody", {}, rows),
  );
}

/**
 * The page of the item whose label brought the interval to where it was after a round.
 *
 * @param {Session} session
 * @param {number} round
 */
function roundPath({ id }, round) {
  return `/sessions/${id}/judged/${round}`;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const value = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  const mark = value("--mark");
  return {
    ink: value("--ink"),
    muted: value("--muted"),
    grid: value("--chart-grid"),
    band1: value("--chart-1"),
    band: value("--chart-band"),
    chart3: value("--chart-3"),
    danger: value("--danger"),
    surface: value("--surface"),
    good: value("--good"),
    goodBand: `${value("--good")}2e`,
    mark,
    markBand: `${mark}1f`,
    font: value("--sans") || "sans-serif",
  };
}

/**
 * An estimate and its interval in words.
 *
 * @param {number} estimate
 * @param {number} lower
 * @param {number} upper
 * @param {number} width
 * @param {ReturnType<typeof telling>} how
 */
function said(estimate, lower, upper, width, { shift, sign }) {
  return `${number(estimate, width, shift)}${sign}, between ${lowerEnd(lower, width, shift)} and ${upperEnd(upper, width, shift)}${sign}`;
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {uPlot.BBox} box
 */
function clip(ctx, box) {
  ctx.beginPath();
  ctx.rect(box.left, box.top, box.width, box.height);
  ctx.clip();
}

/**
 * @param {CanvasRenderingContext2D} ctx
 * @param {[number, number]} from
 * @param {[number, number]} to
 * @param {string} colour
 * @param {number[]} dash
 */
function line(ctx, from, to, colour, dash) {
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.setLineDash(dash.map((part) => part * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(...from);
  ctx.lineTo(...to);
  ctx.stroke();
}
