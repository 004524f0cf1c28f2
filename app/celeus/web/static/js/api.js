/* Requests to the service, as whoever is signed in. */

import { heard } from "./silence.js";

const PATIENCE = 3;
const ANSWER_MS = 15_000;
const WRITTEN_MS = 60_000;
const LONGEST_WAIT_SECONDS = 30;
export const LATE = "The service did not answer in time.";
/** What answers so is not the service, or the service without what it needs. */
const AWAY = new Set([502, 503, 504]);

/** A request that was declined (RFC 9457); status 0: the service was not reached. */
export class Problem extends Error {
  /**
   * @param {number} status
   * @param {Partial<ProblemBody>} told
   * @param {number | null} retryAfter
   */
  constructor(status, told = {}, retryAfter = null) {
    super(told.detail || told.title || "The service cannot be reached.");
    this.name = "Problem";
    this.status = status;
    this.code = told.code ?? (status === 0 ? "unreachable" : "unknown");
    this.title = told.title ?? "The service cannot be reached.";
    this.detail = told.detail ?? this.title;
    this.field = told.field ?? null;
    this.rule = told.rule ?? null;
    this.value = told.value ?? null;
    this.errors = told.errors ?? [];
    this.told = told;
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may well be answered in a moment. */
  get passing() {
    return [0, 429].includes(this.status) || AWAY.has(this.status) || this.code === "busy";
  }
}

/** What every write has to show. */
export function csrf() {
  return document.querySelector("meta[name=csrf]")?.getAttribute("content") ?? "";
}

/** Where somebody signs in, to come back to this page then. */
export function loginPath() {
  return `/login?next=${encodeURIComponent(location.pathname + location.search)}`;
}

/**
 * The JSON that a request is answered with (null without a body), else a `Problem` is thrown.
 *
 * `body` is sent as JSON. Options: `headers`,
 * `signal`, `retry` (how often to try again when the service is busy or away: 3 for GET, else 0;
 * give it for writes that may be repeated), `raw` (resolve with the Response itself), `wait` (how
 * many milliseconds an answer may take: 15 s for GET, else a minute; then it is as if the service
 * was not reached).
 *
 * With status 401 the event `signed-out` is dispatched on `window`, and the browser then goes to
 * sign in, unless a listener prevented the event's default.
 *
 * @param {string} method
 * @param {string} path
 * @param {unknown} [body]
 * @param {RequestOptions} [options]
 * @returns {Promise<any>}
 */
export function api(method, path, body, options = {}) {
  const retry = options.retry ?? (method === "GET" ? PATIENCE : 0);
  return patiently(retry, options.signal ?? null, () => once(method, path, body, options));
}

/**
 * What a request comes to, which is sent again so many times when the service is busy or away.
 *
 * @template T
 * @param {number} retry
 * @param {AbortSignal | null} signal
 * @param {() => Promise<T>} send
 * @returns {Promise<T>}
 */
export async function patiently(retry, signal, send) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof Problem) || !error.passing || attempt >= retry) throw error;
      await pause(waitSeconds(error, attempt), signal);
    }
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} body
 * @param {RequestOptions} options
 */
async function once(method, path, body, options) {
  const { headers: extra, keepalive, signal, raw } = options;
  const wait = options.wait ?? (method === "GET" ? ANSWER_MS : WRITTEN_MS);
  const late = AbortSignal.timeout(wait);
  const headers = new Headers(extra);
  headers.set("Accept", "application/json");
  if (method !== "GET" && method !== "HEAD") headers.set("X-CSRF-Token", csrf());
  /** @type {string | undefined} */
  let sent;
  if (body !== undefined) {
    sent = JSON.stringify(body);
    headers.set("Content-Type", "application/json");
  }
  const asked = fetch(path, {
    method,
    headers,
    body: sent,
    credentials: "same-origin",
    // A page leads to the sign-in where the service refuses
    redirect: "manual",
    keepalive,
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  });
  const answer = await arrived(asked, late);
  if (!AWAY.has(answer.status)) heard();
  if (answer.type === "opaqueredirect") {
    signedOut();
    throw new Problem(401, { title: "You are signed out." });
  }
  if (answer.ok || answer.status === 304) {
    if (raw) return answer;
    const text = await arrived(answer.text(), late);
    return text === "" ? null : JSON.parse(text);
  }
  throw await problemOf(answer);
}

/**
 * What the service sends, else a `Problem`.
 *
 * @template T
 * @param {Promise<T>} awaited
 * @param {AbortSignal} late
 * @returns {Promise<T>}
 */
async function arrived(awaited, late) {
  try {
    return await awaited;
  } catch (error) {
    if (isAborted(error)) throw error;
    throw new Problem(0, late.aborted ? { title: LATE } : {});
  }
}

/** @param {Response} answer */
async function problemOf(answer) {
  /** @type {Partial<ProblemBody>} */
  let told;
  try {
    told = await answer.json();
  } catch {
    told = { title: `The service answered ${answer.status}.` };
  }
  const wait = Number.parseInt(answer.headers.get("Retry-After") ?? "", 10);
  const problem = new Problem(answer.status, told, Number.isFinite(wait) ? wait : null);
  if (answer.status === 401) signedOut();
  return problem;
}

/** Whether an error says that somebody has called the request off. */
export function isAborted(/** @type {unknown} */ error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** What an error says, whatever was thrown. */
export function messageOf(/** @type {unknown} */ error) {
  return error instanceof Error ? error.message : String(error);
}

/** Lead to the sign-in, unless a listener has another way. */
export function signedOut() {
  const event = new CustomEvent("signed-out", { cancelable: true });
  if (window.dispatchEvent(event)) location.assign(loginPath());
}

/**
 * @param {Problem} problem
 * @param {number} attempt
 */
function waitSeconds(problem, attempt) {
  const asked = problem.retryAfter ?? 0.5 * 2 ** attempt;
  // Not all at the same moment
  return Math.min(asked, LONGEST_WAIT_SECONDS) * (1 + 0.3 * Math.random());
}

/**
 * @param {number} seconds
 * @param {AbortSignal | null} signal
 * @returns {Promise<void>}
 */
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
