/* The pools that are here, to choose one of them. */

import { api, messageOf } from "../api.js";
import { askDelete } from "../deletion.js";
import { announce, byId, el, fill, given } from "../dom.js";
import { count, counted } from "../format.js";

const AT_ONCE = 200;
const MOST_SHOWN = 100;
const GUESSES = ["surrogate.", "surrogate_", "dispersion_f", "entropy_f"];
const KINDS = {
  zero_one: "right or wrong",
  cross_entropy: "cross-entropy",
  bounded: "grades",
  difference: "difference of two systems",
};
const JUDGED = {
  zero_one: "right or wrong",
  bounded: "grades",
  preference: "which answer is better",
};
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
 * What is worth knowing of a pool, in a line.
 *
 * @param {Pool} pool
 */
export function factsOf(pool) {
  const end = pool.sealed
    ? hasSurrogate(pool)
      ? "with surrogate"
      : "no surrogate"
    : "not sealed yet";
  if (pool.loss === null) {
    const names = Object.keys(pool.metrics ?? {});
    return `${counted(pool.items, "item")} · ${counted(names.length, "metric")}: ${names.join(", ")} · ${end}`;
  }
  if (pool.systems && "names" in pool.systems)
    return `${counted(pool.items, "item")} · ${pool.systems.names.length} systems, ${KINDS[pool.loss.kind]}${knownWords(pool)}`;
  const { systems } = pool;
  const kind = systems
    ? `${systems.a} against ${systems.b}, ${JUDGED[systems.loss.kind]}`
    : KINDS[pool.loss.kind];
  const { lower, upper } = systems?.loss ?? pool.loss;
  const plain = ["zero_one", "preference"].includes(systems?.loss.kind ?? pool.loss.kind);
  const scale = (plain ? "" : ` from ${lower} to ${upper}`) + knownWords(pool);
  return `${counted(pool.items, "item")} · ${kind}${scale}${levelsWords(pool)} · ${end}`;
}

/** @param {Pool} pool */
function levelsWords({ levels }) {
  const named = [...(levels ?? [])].sort((one, other) => one.grade - other.grade);
  const ends = [named[0], named.at(-1)].map((one) => one && `${one.grade} ${one.name}`);
  return named.length > 0 ? ` · ${ends.join(" … ")}` : "";
}

/** @param {Pool} pool */
function knownWords(pool) {
  return pool.known?.items ? ` · ${count(pool.known.items)} known beforehand` : "";
}

/**
 * The systems among which the best is sought; null in other pools.
 *
 * @param {Pool} pool
 */
export function severalOf({ systems }) {
  return systems && "names" in systems ? systems.names : null;
}

/** The list of pools; `choose` is called with the one somebody picks. */
export class PoolList {
  /** @param {(pool: Pool) => void} choose */
  constructor(choose) {
    this.choose = choose;
    /** @type {Pool[]} */
    this.pools = [];
    /** @type {string | null} */
    this.next = null;
    /** @type {Promise<boolean | null> | null} */
    this.beginning = null;
    byId("pool-search").addEventListener("input", () => this.show());
    byId("more-pools").addEventListener("click", () => this.load());
    byId("archived-pools").addEventListener("change", () => this.again());
    /** @type {string[]} */
    this.scopes = given("scopes");
  }

  /** Ask for the pools the first time they are wanted; whether there are any, null if unknown. */
  begin() {
    this.beginning ??= this.load().then((loaded) => {
      if (!loaded) this.beginning = null;
      return loaded ? this.pools.length > 0 : null;
    });
    return this.beginning;
  }

  /** Ask for all of them anew. */
  again() {
    this.pools = [];
    this.next = null;
    return this.load();
  }

  async load() {
    const query = new URLSearchParams({ limit: String(AT_ONCE) });
    if (byId("archived-pools", HTMLInputElement).checked) query.set("archived", "true");
    if (this.next !== null) query.set("after", this.next);
    try {
      /** @type {PoolPage} */
      const page = await api("GET", `/v1/pools?${query}`);
      this.pools.push(...page.data);
      this.next = page.next;
      this.show();
      return true;
    } catch (problem) {
      byId("pools-told").textContent = `The pools could not be loaded: ${messageOf(problem)}`;
      return false;
    }
  }

  show() {
    const wanted = byId("pool-search", HTMLInputElement).value.trim().toLowerCase();
    const found = this.pools.filter(
      (pool) => pool.name.toLowerCase().includes(wanted) || pool.id === wanted,
    );
    fill(
      byId("pools"),
      found.slice(0, MOST_SHOWN).map((pool) => this.row(pool)),
    );
    byId("more-pools").hidden = this.next === null;
    byId("pools-told").textContent = told(this.pools.length, found.length, this.next !== null);
  }

  /** @param {Pool} pool */
  row(pool) {
    const button = el(
      "button",
      {
        type: "button",
        class: "pool",
        disabled: !pool.sealed,
        on: { click: () => this.choose(pool) },
      },
      el("bdi", { class: "pool-name" }, pool.name),
      el("span", { class: "quiet-text" }, factsOf(pool) + (pool.archived ? " · archived" : "")),
    );
    return el("li", {}, button, this.tools(pool));
  }

  /**
   * What can be done with a pool beside choosing it, by whoever looks for archived ones.
   *
   * @param {Pool} pool
   */
  tools(pool) {
    if (!byId("archived-pools", HTMLInputElement).checked) return null;
    /** @type {(word: string, scope: string, kind: string, work: () => void) => HTMLElement | null} */
    const tool = (word, scope, kind, work) =>
      this.scopes.includes(scope)
        ? el(
            "button",
            { type: "button", class: `button small ${kind}`, on: { click: work } },
            word,
            el("span", { class: "visually-hidden" }, ` ${pool.name}`),
          )
        : null;
    const archive = pool.archived ? "Restore" : "Archive";
    return el(
      "div",
      { class: "row pool-tools" },
      tool(archive, "manage", "", () => this.archive(pool)),
      pool.archived && tool("Delete…", "admin", "danger", () => this.destroy(pool)),
    );
  }

  /** @param {Pool} pool */
  async archive(pool) {
    try {
      await api("PATCH", `/v1/pools/${pool.id}`, { archived: !pool.archived });
      await this.again();
      announce(pool.archived ? "The pool is back in the lists." : "The pool is archived.");
    } catch (problem) {
      byId("pools-told").textContent = messageOf(problem);
    }
  }

  /** @param {Pool} pool */
  destroy(pool) {
    askDelete({
      path: `/v1/pools/${pool.id}`,
      title: "Delete this pool for good?",
      words: `“${pool.name}” goes with its ${counted(pool.items, "item")}. A pool with sessions stays: delete those first.`,
      name: pool.name,
      done: () => this.again().then(() => announce("The pool is deleted.")),
    });
  }
}

/**
 * @param {number} all
 * @param {number} found
 * @param {boolean} more
 */
function told(all, found, more) {
  if (all === 0) return "There is no pool yet. Upload a file instead.";
  const shown = Math.min(found, MOST_SHOWN);
  const of = shown < all || more ? ` of ${more ? "more than " : ""}${all}` : "";
  return found === 0
    ? "No pool name contains this."
    : `${counted(shown, "pool")}${of}, newest first.`;
}
