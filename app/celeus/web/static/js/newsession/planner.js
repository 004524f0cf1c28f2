/* What a session will take, simulated by the service before it is opened. */

import { api } from "../api.js";
import { byId } from "../dom.js";
import { swap } from "../live.js";

/** How often a plan is asked for again while the service is busy. */
export const RETRIES = 2;
/** A service may be set to simulate for ten minutes. */
const PLANNED_MS = 630_000;
const NEAR = 1e-9;

/** Seconds that a label takes where nobody knows, by who judges. */
export const PACES = { people: 30, programs: 1 };

/**
 * The way to ask for plans for a pool.
 *
 * @param {string} poolId
 * @returns {(body: unknown, signal: AbortSignal) => Promise<Plan | TablePlan>}
 */
export function planned(poolId) {
  return (body, signal) =>
    api("POST", `/v1/pools/${poolId}/planning`, body, { signal, retry: RETRIES, wait: PLANNED_MS });
}

/**
 * What a plan is shown for: the policy that is chosen, and how many `items` may be drawn.
 *
 * @typedef {{ policy: string, items: number, compared: boolean }} Wanted
 */

/** A plan on the page, at a precision of its curve and at a pace; the service renders it. */
export class Shown {
  #plan;
  #wanted;
  #signal;
  /** @type {number | null} */
  #precision = null;
  #seconds = 0;
  #stale = false;
  /** @type {Promise<void> | null} */
  #rendering = null;

  /**
   * @param {Plan | TablePlan} plan
   * @param {Wanted} wanted
   * @param {AbortSignal} signal says that it is shown no longer
   */
  constructor(plan, wanted, signal) {
    this.#plan = plan;
    this.#wanted = wanted;
    this.#signal = signal;
  }

  /** Whether the precision that is shown was not asked for, but is read off the curve. */
  get isRead() {
    return this.#plan.claims === null && this.#precision !== this.#plan.precision;
  }

  /** Resolves when the page shows what was told last. */
  get shown() {
    return this.#rendering;
  }

  /** Labels at the precision that is shown, to be kept with a session; null where none are known. */
  async labels() {
    await this.#rendering;
    return JSON.parse(byId("plan-result").dataset.labels ?? "null");
  }

  /**
   * Show what a precision takes at a pace; false where the plan does not reach so far.
   *
   * @param {number | null} precision
   * @param {number} seconds that a label takes
   */
  tell(precision, seconds) {
    if (!this.#reaches(precision)) return false;
    if (precision !== this.#precision || seconds !== this.#seconds) {
      this.#precision = precision;
      this.#seconds = seconds;
      this.show().catch(() => {});
    }
    return true;
  }

  /**
   * Show another policy of the plan.
   *
   * @param {string} policy
   */
  use(policy) {
    this.#wanted.policy = policy;
    return this.show();
  }

  /** What is shown as it is now; of changes that come at once, the last. */
  show() {
    this.#stale = true;
    this.#rendering ??= this.#render().finally(() => {
      this.#rendering = null;
    });
    return this.#rendering;
  }

  async #render() {
    while (this.#stale) {
      this.#stale = false;
      const body = {
        ...this.#wanted,
        plan: this.#plan,
        precision: this.#precision,
        seconds: this.#seconds,
      };
      await swap("plan-result", "/sessions/new/plan", { body, signal: this.#signal });
    }
  }

  /** @param {number | null} precision */
  #reaches(precision) {
    const { claims, policies } = this.#plan;
    if (claims !== null || precision === this.#plan.precision) return true;
    const chosen = policies.find(({ policy }) => policy === this.#wanted.policy);
    if (precision === null || chosen === undefined || chosen.refused !== null) return false;
    const widths = chosen.curve.map(({ precision: width }) => width ?? NaN);
    return (
      Math.min(...widths) <= precision * (1 + NEAR) && precision <= Math.max(...widths) * (1 + NEAR)
    );
  }
}

/**
 * Hear of a precision that is chosen on the curve, and of a policy that is cheaper.
 *
 * @param {(precision: number) => void} choose
 * @param {(policy: string) => void} use
 */
export function listen(choose, use) {
  const place = byId("plan-result");
  /** @param {EventTarget | Element | null} spot */
  const choice = (spot) => {
    if (spot instanceof SVGElement && spot.dataset.precision)
      choose(Number(spot.dataset.precision));
  };
  place.addEventListener("input", (event) => {
    // The form hears of the precision itself
    event.stopPropagation();
    const { target } = event;
    const spots = place.querySelectorAll("[data-precision]");
    if (target instanceof HTMLInputElement) choice(spots[Number(target.value)]);
  });
  place.addEventListener("click", ({ target }) => {
    if (target instanceof HTMLElement && target.dataset.use) use(target.dataset.use);
  });
  let pressed = false;
  place.addEventListener("pointerdown", ({ target }) => {
    pressed = true;
    choice(target);
  });
  addEventListener("pointerup", () => (pressed = false));
  place.addEventListener("pointermove", (event) => {
    if (pressed) choice(document.elementFromPoint(event.clientX, event.clientY));
  });
}

/**
 * Move the slider to a precision.
 *
 * @param {number} precision
 */
export function point(precision) {
  const slider = document.getElementById("curve-at");
  const spots = [...byId("plan-result").querySelectorAll("[data-precision]")];
  const off = spots.map((spot) =>
    Math.abs(Math.log(Number(spot.getAttribute("data-precision")) / precision)),
  );
  if (slider instanceof HTMLInputElement) slider.value = String(off.indexOf(Math.min(...off)));
}
