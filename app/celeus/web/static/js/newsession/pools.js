/* The pools that are here, to choose one of them. */

import { api, messageOf } from "../api.js";
import { byId } from "../dom.js";
import "../forms.js";
import { swap } from "../live.js";

const TYPED_MS = 200;
const GUESSES = ["surrogate.", "surrogate_", "dispersion_f", "entropy_f"];
/** @type {Partial<Record<LossKind, Record<string, string[]>>>} */
const STRATEGIES = {
  zero_one: {
    A: ["hard", "dispersion_f"],
    B: ["dispersion_f", "soft"],
    C: ["soft", "dispersion_f"],
  },
  cross_entropy: {
    A: ["mode_loss", "entropy_f"],
    B: ["entropy_f", "mode_loss"],
    C: ["entropy_f", "entropy_g"],
  },
};

/**
 * The pool carries something that guesses losses.
 *
 * @param {Pool} pool
 */
export function hasSurrogate(pool) {
  return pool.columns.some((column) => GUESSES.some((begin) => column.startsWith(begin)));
}

/**
 * Items that a session may draw: all, but for what is known.
 *
 * @param {Pool} pool
 * @param {boolean} audited
 */
export function drawable(pool, audited) {
  return pool.items - (audited ? 0 : (pool.known?.items ?? 0));
}

/**
 * Strategies the columns of a pool allow.
 *
 * @param {Pool} pool
 */
export function strategiesOf(pool) {
  const known = (pool.loss && STRATEGIES[pool.loss.kind]) ?? {};
  return Object.keys(known).filter((name) =>
    known[name].every((column) => pool.columns.includes(column)),
  );
}

/**
 * The systems among which the best is sought; null in other pools.
 *
 * @param {Pool} pool
 */
export function severalOf({ systems }) {
  return systems && "names" in systems ? systems.names : null;
}

/** The list of pools, as the service renders it; `choose` is called with the one somebody picks. */
export class PoolList {
  #limit = "";
  #asking = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing;

  /** @param {(pool: Pool) => void} choose */
  constructor(choose) {
    byId("pool-search").addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.again(), TYPED_MS);
    });
    byId("archived-pools").addEventListener("change", () => this.again());
    byId("pool-list").addEventListener("click", async ({ target }) => {
      const pressed = target instanceof Element ? target.closest("button") : null;
      if (pressed?.id === "more-pools") {
        this.#limit = pressed.dataset.limit ?? "";
        this.again();
      } else if (pressed?.dataset.pool) {
        await api("GET", `/v1/pools/${pressed.dataset.pool}`).then(choose, tell);
      }
    });
  }

  /** Whether there are any. */
  get some() {
    return document.querySelector("#pools li") !== null;
  }

  /** Ask for them anew. */
  async again() {
    const query = new URLSearchParams({ q: byId("pool-search", HTMLInputElement).value });
    if (byId("archived-pools", HTMLInputElement).checked) query.set("archived", "true");
    if (this.#limit !== "") query.set("limit", this.#limit);
    const address = `/sessions/new?${query}`;
    for (const form of document.querySelectorAll("form[data-swap]"))
      form.setAttribute("action", address);
    this.#asking.abort();
    const { signal } = (this.#asking = new AbortController());
    await swap("pool-list", address, { signal }).catch(
      (problem) => signal.aborted || tell(problem),
    );
  }
}

/** @param {unknown} problem */
function tell(problem) {
  byId("pools-told").textContent = `The pools could not be loaded: ${messageOf(problem)}`;
}
