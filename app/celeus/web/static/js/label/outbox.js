/* What was judged and is not with the service yet: kept by the browser until it is. */

import { keep, recalled } from "./memory.js";

const PREFIX = "celeus.unsent";
const BEAT_MS = 20_000;
const GONE_MS = 180_000;
/** How long a label can be taken back where the service takes none back. */
export const HOLD_MS = 5_000;

/** @typedef {{ alive: number, entries: Entry[] }} Kept */

/**
 * The unsent judgements of one window, in order.
 *
 * An entry is `{kind: "observe" | "amend" | "comment", round, said, worker, tried, until}`; a comment
 * is the same judgement said again with other words beside it. It goes only when the
 * service has answered it; sent twice it does no harm, because the service knows it again. The last
 * one is held back `until` a moment: so it can be taken back where the service takes nothing back.
 */
export class Outbox {
  /**
   * @param {string} session
   * @param {string} name
   * @param {string} worker
   * @param {number} holdMs how long the last judgement is held back
   */
  constructor(session, name, worker, holdMs) {
    this.session = session;
    this.name = name;
    this.worker = worker;
    this.place = placeOf(session, name, worker);
    this.holdMs = holdMs;
    this.entries = readAt(this.place)?.entries ?? [];
    this.kept = true;
    this.#write();
    // What a closed window has left may be sent by another; a window in use says so now and then
    setInterval(() => this.#beat(), BEAT_MS);
    window.addEventListener("pagehide", () => this.#write(0));
    window.addEventListener("pageshow", (event) => {
      if (event.persisted) this.entries = readAt(this.place)?.entries ?? [];
      this.#write();
    });
  }

  /** The one to be sent now. */
  get due() {
    return this.dueAt <= Date.now() ? this.entries[0] : null;
  }

  get dueAt() {
    return this.entries[0]?.until ?? Number.POSITIVE_INFINITY;
  }

  get rounds() {
    return new Set(this.entries.map((entry) => entry.round));
  }

  /** Of these rounds nothing is known to the service yet. */
  get labels() {
    return this.entries.filter((entry) => entry.kind === "observe").length;
  }

  /**
   * @param {Entry["kind"]} kind
   * @param {number} round
   * @param {Judgement} said
   */
  add(kind, round, said) {
    this.letGo();
    const until = Date.now() + this.holdMs;
    this.entries.push({ kind, round, said, worker: this.worker, tried: false, until });
    this.#write();
  }

  /** Hold nothing back any longer. */
  letGo() {
    for (const entry of this.entries) entry.until = 0;
  }

  /**
   * What is said of a round, while nobody was told.
   *
   * @param {number} round
   */
  untold(round) {
    const entry = this.entries.findLast((one) => one.round === round);
    return entry?.tried === false ? entry : null;
  }

  /**
   * The service may have it from now on, even if no answer comes.
   *
   * @param {Entry} entry
   */
  trying(entry) {
    if (entry.tried) return;
    entry.tried = true;
    this.#write();
  }

  /** @param {Entry} entry */
  done(entry) {
    this.entries = this.entries.filter((one) => one !== entry);
    this.#write();
  }

  /**
   * Say something else of a round, if nobody was told yet; returns whether that was so.
   *
   * @param {Entry["kind"]} kind
   * @param {number} round
   * @param {Judgement} said
   */
  replace(kind, round, said) {
    const entry = this.untold(round);
    if (entry === null) return false;
    entry.said = said;
    entry.until = Date.now() + this.holdMs;
    if (entry.kind === "comment") entry.kind = kind;
    this.#write();
    return true;
  }

  /** Take over what closed windows of this name have left; returns how many judgements. */
  adopt() {
    let taken = 0;
    for (const [place, kept] of leftBehind(this.session, this.name)) {
      if (place === this.place) continue;
      this.entries.unshift(...kept.entries);
      taken += kept.entries.length;
      this.#write();
      localStorage.removeItem(place);
    }
    return taken;
  }

  /**
   * Names, other than this one, under which judgements of this session wait in this browser.
   *
   * @returns {Map<string, number>}
   */
  strangers() {
    const found = new Map();
    for (const [place, kept] of leftBehind(this.session, null)) {
      const name = decodeURIComponent(place.split(":")[2] ?? "");
      if (name !== this.name) found.set(name, (found.get(name) ?? 0) + kept.entries.length);
    }
    return found;
  }

  #beat() {
    if (this.entries.length === 0) return;
    if (this.kept && readAt(this.place) === null) {
      // Another window took them over while this one was frozen: the service may have them all
      for (const entry of this.entries) entry.tried = true;
    }
    this.#write();
  }

  #write(alive = Date.now()) {
    const { entries, place } = this;
    this.kept = keep("localStorage", place, entries.length === 0 ? null : { alive, entries });
  }
}

/** @param {...string} parts */
function placeOf(...parts) {
  return [PREFIX, ...parts.map(encodeURIComponent)].join(":");
}

/**
 * @param {string} session
 * @param {string | null} name
 * @returns {Generator<[place: string, kept: Kept]>}
 */
function* leftBehind(session, name) {
  const begin = `${name === null ? placeOf(session) : placeOf(session, name)}:`;
  for (const place of places().filter((one) => one.startsWith(begin))) {
    const kept = readAt(place);
    // Of a clock that was put back meanwhile nothing is known either
    if (kept !== null && Math.abs(Date.now() - kept.alive) > GONE_MS) yield [place, kept];
  }
}

function places() {
  try {
    return Object.keys(localStorage);
  } catch {
    return [];
  }
}

/**
 * @param {string} place
 * @returns {Kept | null}
 */
function readAt(place) {
  const kept = recalled("localStorage", place);
  if (!Array.isArray(kept?.entries)) return null;
  // What was written by a window that is left is held back no longer
  for (const entry of kept.entries) entry.until = 0;
  return kept;
}
