/* Following a session live: what is new, and whether it is still being told. */

import { api, Problem } from "../api.js";
import { doubtful, everySecond, heard, SILENT_MS } from "../silence.js";

const AGAIN_MS = 3_000;

/**
 * @typedef {object} Followed
 * @property {(news: News) => void} told
 * @property {(since: number) => void} lost
 * @property {() => void} found
 * @property {(problem: Problem) => void} gone
 */

/**
 * Follow a session until it is closed or gone.
 *
 * `told` gets `{session, points, reset}`; `lost` is called when the stream says nothing though the
 * service answers, with the moment of its last word, `found` when it speaks, `gone` with the
 * `Problem` when the session or the right to see it is no more.
 * Returns what ends it.
 *
 * @param {string} id
 * @param {Followed} listeners
 * @returns {() => void}
 */
export function follow(id, { told, lost, found, gone }) {
  /** @type {EventSource} */
  let source;
  /** @type {number | undefined} */
  let timer;
  let asking = false;
  let ended = false;
  let spokeAt = Date.now();
  let from = spokeAt;

  function open() {
    source = new EventSource(`/v1/sessions/${id}/stream?alive=true`);
    source.addEventListener("session", moved);
    source.addEventListener("alive", spoke);
    source.addEventListener("error", failed);
  }

  function spoke() {
    spokeAt = Date.now();
    heard();
    found();
  }

  /** @param {MessageEvent<string>} event */
  function moved(event) {
    /** @type {News} */
    const news = JSON.parse(event.data);
    spoke();
    told(news);
    // The service ends the stream then; a browser would ask for it again and again
    if (news.session.state === "closed") stop();
  }

  const watch = everySecond((now, fresh) => {
    // The page tells by itself when it is the service that is silent
    if (fresh || doubtful()) from = now;
    if (asking || now - Math.max(from, spokeAt) < SILENT_MS) return;
    lost(spokeAt);
    from = now;
    source.close();
    again();
  });

  function failed() {
    // A browser tries again by itself after a cut, and never after an answer that is a refusal
    if (source.readyState !== EventSource.CLOSED) return;
    timer = setTimeout(again, AGAIN_MS);
  }

  async function again() {
    clearTimeout(timer);
    asking = true;
    try {
      await api("GET", `/v1/sessions/${id}`, undefined, { retry: 0 });
      if (!ended) open();
    } catch (problem) {
      if (ended) return;
      if (problem instanceof Problem && [401, 403, 404].includes(problem.status)) gone(problem);
      else timer = setTimeout(again, AGAIN_MS);
    }
    asking = false;
  }

  function stop() {
    ended = true;
    clearInterval(watch);
    clearTimeout(timer);
    source.close();
  }

  open();
  return stop;
}
