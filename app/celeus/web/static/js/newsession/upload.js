/* Sending a file, with its progress told and a way to stop. */

import { csrf, LATE, Problem, signedOut } from "../api.js";
import { read } from "../live.js";

const STUCK_MS = 60_000;
const READ_MS = 15 * 60_000;

/**
 * @typedef {object} Uploading
 * @property {(share: number) => void} told
 * @property {AbortSignal} signal
 * @property {Record<string, string>} headers
 */

/**
 * The text of the answer, else a `Problem` is thrown; a page that says what is wrong is an answer.
 *
 * A form has no `media` of its own. `told` is called with the share that has been sent, from 0 to 1. An aborted `signal` rejects
 * with its reason. Where nothing more is sent for a minute, or the whole file is not read within a
 * quarter of an hour, it is as if the service was not reached.
 *
 * @param {string} path
 * @param {Blob | FormData | URLSearchParams} body
 * @param {string | null} media
 * @param {Uploading} options
 * @returns {Promise<string>}
 */
export function upload(path, body, media, { told, signal, headers }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    const sent = { Accept: "application/json", "X-CSRF-Token": csrf(), ...headers };
    for (const [name, value] of Object.entries(sent)) request.setRequestHeader(name, value);
    if (media !== null) request.setRequestHeader("Content-Type", media);
    /** @type {number | undefined} */
    let timer;
    const within = (/** @type {number} */ milliseconds) => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        reject(new Problem(0, { title: LATE }));
        request.abort();
      }, milliseconds);
    };
    request.upload.addEventListener("load", () => within(READ_MS));
    request.addEventListener("loadend", () => clearTimeout(timer));
    request.upload.addEventListener("progress", (event) => {
      within(STUCK_MS);
      if (event.lengthComputable) told(event.loaded / event.total);
    });
    request.addEventListener("load", () => {
      const isPage = request.getResponseHeader("Content-Type")?.startsWith("text/html");
      if (new URL(request.responseURL).pathname === "/login") reject(problemOf(request, 401));
      else if (request.status < 300 || isPage) resolve(request.responseText);
      else reject(problemOf(request));
    });
    request.addEventListener("error", () => reject(new Problem(0)));
    request.addEventListener("abort", () => reject(signal.reason));
    signal.addEventListener("abort", () => request.abort());
    within(STUCK_MS);
    request.send(body);
  });
}

/**
 * The page that a form is answered with; one without this element says why in its heading.
 *
 * @param {string} path
 * @param {FormData | URLSearchParams} form
 * @param {string} id
 * @param {Uploading} options
 */
export async function pageOf(path, form, id, options) {
  const page = read(await upload(path, form, null, options));
  if (page.getElementById(id) !== null) return page;
  throw new Problem(0, { title: page.querySelector("h1")?.textContent ?? undefined });
}

/** @param {XMLHttpRequest} request */
function problemOf(request, status = request.status) {
  /** @type {Partial<ProblemBody>} */
  let told = { title: `The service answered ${status}.` };
  try {
    told = JSON.parse(request.responseText);
  } catch {
    // Something between here and the service answered
  }
  const wait = Number.parseInt(request.getResponseHeader("Retry-After") ?? "", 10);
  if (status === 401) signedOut();
  return new Problem(status, told, Number.isFinite(wait) ? wait : null);
}
