/* Following a session live: what is new, and whether it is still being told. */

import { api, Problem } from "../api.js";

const AGAIN_MS = 3_000;

/**
 * @typedef {object} Followed
 * @property {(news: News) => void} told
 * @property {() => void} lost
 * @property {() => void} found
 * @property {(problem: Problem) => void} gone
 */

/**
 * Follow a session until it is closed or gone.
 *
 * `told` gets `{session, points, reset}`; `lost` is called when the connection is lost, `found`
 * when it is back, `gone` with the `Problem` when the session or the right to see it is no more.
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
  let away = false;
  let ended = false;

  function open() {
    source = new EventSource(`/v1/sessions/${id}/stream`);
    source.addEventListener("session", heard);
    source.addEventListener("error", failed);
  }

  /** @param {MessageEvent<string>} event */
  function heard(event) {
    const news = JSON.parse(event.data);
    if (away) found();
    away = false;
    told(news);
    // The service ends the stream then; a browser would ask for it again and again
    if (news.session.state === "closed") stop();
  }

  function failed() {
    if (!away) lost();
    away = true;
    // A browser tries again by itself after a cut, and never after an answer that is a refusal
    if (source.readyState !== EventSource.CLOSED) return;
    source.close();
    timer = setTimeout(again, AGAIN_MS);
  }

  async function again() {
    try {
      await api("GET", `/v1/sessions/${id}`, undefined, { retry: 0 });
      if (!ended) open();
    } catch (problem) {
      if (ended) return;
      if (problem instanceof Problem && [401, 403, 404].includes(problem.status)) gone(problem);
      else timer = setTimeout(again, AGAIN_MS);
    }
  }

  function stop() {
    ended = true;
    clearTimeout(timer);
    source.close();
  }

  open();
  return stop;
}
