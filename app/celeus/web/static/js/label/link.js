/* The line to the service: one request at a time, what was judged before anything else. */

import { api, Problem } from "../api.js";

/** @import { Outbox } from "./outbox.js" */

const SECOND = 1000;
/** Items held are those of so much work: others wait for them when somebody leaves. */
const AHEAD_MS = 30 * SECOND;
const LEAST_HELD = 2;
const MOST_HELD = 20;
/** How long an item takes whoever has not judged yet. */
const FIRST_PACE_MS = 15 * SECOND;
const LONGEST_PACE_MS = 60 * SECOND;
/** The share that an item has in the pace. */
const NEWEST = 1 / 8;
const ANSWER_MS = 20 * SECOND;
const LONGEST_BEAT_MS = 30 * SECOND;
const LOOK_AGAIN_MS = 15 * SECOND;
const OTHERS_MS = 5 * SECOND;
const WAITING_MS = 30 * 60 * SECOND;
const IDLE_MS = 60 * SECOND;
const WORDS_A_SECOND = 3;
const LONGEST_BACKOFF_MS = 15 * SECOND;

/**
 * Sends the outbox, holds draws, and renews their leases while somebody is there. Who touches
 * nothing for a minute, and for as long as the item takes to read, gives the draws back: all labels
 * behind them wait for these.
 *
 * `tell` is called with what happened: `draws`, `state`, `line`, `sent` (with the entry and its
 * answer), `refused` (with the entry and the problem) or `released`. `line` is `up`, `down`, `signed-out`, `forbidden` or `gone`.
 */
export class Link {
  /**
   * @param {string} session
   * @param {string} worker
   * @param {Outbox} outbox
   * @param {number} leaseSeconds
   * @param {(event: LinkEvent) => void} tell
   */
  constructor(session, worker, outbox, leaseSeconds, tell) {
    this.path = `/v1/sessions/${session}`;
    this.worker = worker;
    this.outbox = outbox;
    this.beatMs = Math.min((leaseSeconds * SECOND) / 3, LONGEST_BEAT_MS);
    this.tell = tell;
    /** @type {DrawAnswer["state"]} */
    this.state = "active";
    /** @type {Line} */
    this.line = "up";
    /** @type {Draw[]} */
    this.draws = [];
    this.archived = false;
    this.failures = 0;
    this.askAt = 0;
    this.usedAt = Date.now();
    this.heldAt = 0;
    this.readingMs = 0;
    this.paceMs = FIRST_PACE_MS;
    this.judgedAt = Date.now();
    /** @type {Set<number>} */
    this.released = new Set();
    /** @type {Set<number>} */
    this.passing = new Set();
    /** @type {Set<number>} */
    this.passed = new Set();
    this.waiting = false;
    this.wakeUp = () => {};
  }

  /** Go on for ever. */
  async run() {
    for (;;) {
      const entry = this.outbox.due;
      if (entry === null && this.passing.size === 0 && Date.now() < this.#due()) {
        const away = this.#away();
        if (away) this.release();
        const next = away ? this.#due() : Math.min(this.#due(), this.#awayAt());
        await this.#sleep(Math.min(next, this.outbox.dueAt) - Date.now());
        continue;
      }
      try {
        if (entry === null && this.passing.size > 0) {
          await this.#passOn();
          continue;
        }
        const answer = entry === null ? await this.#ask() : await this.#send(entry);
        if (entry !== null) {
          this.outbox.done(entry);
          this.tell({ what: "sent", entry, answer });
        }
        this.#taken(answer, entry);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        await this.#failed(error, entry);
      }
    }
  }

  /**
   * The line as far as is known, where a request waits and the service is `silent`.
   *
   * @param {number | null} silent
   */
  lineNow(silent) {
    return this.line === "up" && silent !== null ? "down" : this.line;
  }

  /** Somebody is there. */
  used() {
    const away = this.#away();
    this.usedAt = Date.now();
    if (away) this.retry();
  }

  /** Let others have what is held; whoever comes back asks for it again. */
  release() {
    this.outbox.letGo();
    const held = [...this.draws.map((draw) => draw.round), ...this.passing];
    const rounds = held.filter((one) => !this.released.has(one));
    if (rounds.length === 0 || this.line !== "up") return;
    for (const round of rounds) this.released.add(round);
    const body = { worker: this.worker, rounds };
    // Where it does not arrive, the leases run out
    api("POST", `${this.path}/release`, body, { keepalive: true }).catch(() => {});
  }

  /** The window closes: send what is held back, and let others have the rest. */
  leave() {
    const entry = this.outbox.entries.at(-1);
    const held = entry !== undefined && entry.until > Date.now();
    this.release();
    if (!held || this.line !== "up") return;
    const body = { round: entry.round, ...entry.said, worker: entry.worker, next: 0 };
    // It is kept, and sent again where it does not arrive
    api("POST", `${this.path}/observe`, body, { keepalive: true }).catch(() => {});
  }

  /**
   * Leave the draw to somebody else. It comes back where there is nothing else to hand out.
   *
   * @param {number} round
   */
  pass(round) {
    this.passing.add(round);
    this.waiting = true;
    this.judged(round);
  }

  /**
   * The draw was judged: it is in the outbox now.
   *
   * @param {number} round
   */
  judged(round) {
    const took = Math.min(Date.now() - this.judgedAt, LONGEST_PACE_MS);
    this.paceMs += NEWEST * (took - this.paceMs);
    this.judgedAt = Date.now();
    this.draws = this.draws.filter((draw) => draw.round !== round);
    this.wakeUp();
  }

  /** Try at once, whatever has failed. */
  retry() {
    this.usedAt = Date.now();
    this.askAt = 0;
    this.wakeUp();
  }

  #due() {
    if (this.state === "closed") return Number.POSITIVE_INFINITY;
    // Whoever went away and left the window open must not keep items from the others
    return this.#away() ? Number.POSITIVE_INFINITY : this.askAt;
  }

  #away() {
    return Date.now() >= this.#awayAt();
  }

  #awayAt() {
    if (this.draws.length === 0) return this.usedAt + WAITING_MS;
    return Math.max(this.usedAt, this.heldAt) + IDLE_MS + this.readingMs;
  }

  /** How many items to have at hand: for some time of work, also without a connection. */
  get #wanted() {
    const ahead = Math.floor(AHEAD_MS / Math.max(1, this.paceMs));
    // While the last judgement is held back, its item cannot make room for another
    const held = this.outbox.holdMs > 0 ? 1 : 0;
    return Math.min(MOST_HELD, Math.max(LEAST_HELD, ahead)) + held;
  }

  async #ask() {
    const count = this.#wanted + this.outbox.rounds.size;
    return await this.#post("next", { worker: this.worker, count });
  }

  async #passOn() {
    const rounds = [...this.passing];
    const body = { worker: this.worker, rounds, pass: true };
    await api("POST", `${this.path}/release`, body, { wait: ANSWER_MS });
    // What has come back once is left to others for a while
    const again = rounds.some((one) => this.passed.has(one));
    for (const round of rounds) {
      this.passing.delete(round);
      this.passed.add(round);
    }
    this.askAt = again ? Date.now() + LOOK_AGAIN_MS : 0;
  }

  /** @param {Entry} entry */
  async #send(entry) {
    const { kind, round, said, worker } = entry;
    this.outbox.trying(entry);
    if (kind === "amend")
      return await this.#post("amendments", { round, ...said, reason: "undone by the judge" });
    const others = new Set(
      this.outbox.entries.filter((one) => one !== entry).map((one) => one.round),
    );
    const next = worker === this.worker ? this.#wanted + others.size : 0;
    return await this.#post("observe", { round, ...said, worker, next });
  }

  /**
   * @param {"next" | "observe" | "amendments"} verb
   * @param {Record<string, unknown>} body
   * @returns {Promise<any>}
   */
  async #post(verb, body) {
    try {
      const answer = await api("POST", `${this.path}/${verb}`, body, { wait: ANSWER_MS });
      // Whatever else answers, as the sign-in page of a network does, has not taken the label
      if (verb !== "next" && answer.receipt.round !== body.round) throw new Problem(0);
      if (!Array.isArray(answer.draws)) throw new Problem(0);
      return answer;
    } catch (error) {
      // An answer that broke off, or that is not the service's, is none
      throw error instanceof Problem ? error : new Problem(0);
    }
  }

  /**
   * @param {DrawAnswer | ObserveAnswer} answer
   * @param {Entry | null} entry
   */
  #taken(answer, entry) {
    this.failures = 0;
    this.#setLine("up");
    const offered = entry === null || (entry.kind !== "amend" && entry.worker === this.worker);
    if (offered) {
      this.archived = false;
      const judged = this.outbox.rounds;
      if (this.draws.length === 0) this.heldAt = Date.now();
      // Answers are in the order of numbers that say nothing: what came first stays first
      const places = new Map(this.draws.map(({ round }, at) => [round, at]));
      const placeOf = (/** @type {Draw} */ { round }) => places.get(round) ?? places.size;
      this.draws = answer.draws
        .filter(({ round }) => !judged.has(round) && !this.passing.has(round))
        .sort((one, other) => placeOf(one) - placeOf(other));
      this.waiting &&= this.passing.size > 0;
      this.readingMs = Math.max(0, ...this.draws.map(readingMs));
      if (this.released.size > 0) this.tell({ what: "released" });
      this.released.clear();
      const busy = ["active", "all_leased", "waiting"].includes(answer.state);
      const few = this.draws.length < LEAST_HELD && busy;
      const wait = few ? Math.min((answer.retry_after ?? 1) * SECOND, OTHERS_MS) : this.beatMs;
      this.askAt = Date.now() + (busy ? wait : LOOK_AGAIN_MS);
    }
    this.#setState(answer.state, offered);
    this.tell({ what: "draws" });
  }

  /**
   * @param {Problem} problem
   * @param {Entry | null} entry
   */
  async #failed(problem, entry) {
    // What stands between may refuse as well, as a gateway does while the service is exchanged
    if (problem.passing || problem.status >= 500 || problem.code === "unknown") {
      this.failures += 1;
      this.#setLine("down");
      const backoff = Math.min(SECOND * 2 ** (this.failures - 1), LONGEST_BACKOFF_MS);
      await this.#sleep(Math.max(backoff, (problem.retryAfter ?? 0) * SECOND));
    } else if (problem.status === 401 || problem.code.startsWith("csrf")) {
      await this.#standStill("signed-out");
    } else if (problem.status === 403) {
      await this.#standStill("forbidden");
    } else if (problem.code === "session_not_found") {
      await this.#standStill("gone");
    } else if (entry === null) {
      this.passing.clear();
      this.askAt = Date.now() + LOOK_AGAIN_MS;
      if (problem.code === "session_archived") this.#rest();
    } else if (problem.code === "session_archived") {
      // What is archived can be restored: the label is kept, and sent then
      this.#rest();
      this.tell({ what: "refused", entry, problem });
      await this.#sleep(LOOK_AGAIN_MS);
    } else {
      this.outbox.done(entry);
      if (problem.code === "session_closed") this.#setState("closed", true);
      this.tell({ what: "refused", entry, problem });
    }
  }

  /** An archived session takes nothing until it is restored, which is looked for now and then. */
  #rest() {
    this.archived = true;
    this.draws = [];
    this.#setLine("up");
    this.#setState("paused", true);
  }

  /** @param {Line} line */
  async #standStill(line) {
    this.#setLine(line);
    await this.#sleep(Number.POSITIVE_INFINITY);
  }

  /** @param {Line} line */
  #setLine(line) {
    if (line === this.line) return;
    this.line = line;
    this.tell({ what: "line" });
  }

  /**
   * @param {DrawAnswer["state"]} state
   * @param {boolean} offered
   */
  #setState(state, offered) {
    // An amendment is answered without an offer: whether others hold everything is not told then
    const known = !offered && state === "active" ? this.state : state;
    if (known === this.state) return;
    this.state = known;
    if (known === "closed") this.draws = [];
    this.tell({ what: "state" });
  }

  /**
   * @param {number} milliseconds
   * @returns {Promise<void>}
   */
  #sleep(milliseconds) {
    return new Promise((resolve) => {
      const longest = 2 ** 31 - 1;
      const timer = setTimeout(resolve, Math.min(milliseconds, longest));
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** @param {Draw} draw */
function readingMs(draw) {
  return (JSON.stringify(draw).split(/\s+/).length / WORDS_A_SECOND) * SECOND;
}
