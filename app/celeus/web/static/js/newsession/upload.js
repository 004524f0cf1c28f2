/* Sending a file, with its progress told and a way to stop. */

import { csrf, LATE, loginPath, Problem } from "../api.js";

const STUCK_MS = 60_000;
const READ_MS = 15 * 60_000;

/**
 * @typedef {object} Uploading
 * @property {(share: number) => void} told
 * @property {AbortSignal} signal
 * @property {Record<string, string>} headers
 */

/**
 * The JSON that the upload is answered with, else a `Problem` is thrown.
 *
 * `told` is called with the share that has been sent, from 0 to 1. An aborted `signal` rejects
 * with its reason. Where nothing more is sent for a minute, or the whole file is not read within a
 * quarter of an hour, it is as if the service was not reached.
 *
 * @param {string} path
 * @param {Blob} file
 * @param {string} media
 * @param {Uploading} options
 * @returns {Promise<any>}
 */
export function upload(path, file, media, { told, signal, headers }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries({
      "Content-Type": media,
      Accept: "application/json",
      "X-CSRF-Token": csrf(),
      ...headers,
    })) {
      request.setRequestHeader(name, value);
    }
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
      if (request.status >= 200 && request.status < 300) resolve(JSON.parse(request.responseText));
      else reject(problemOf(request));
    });
    request.addEventListener("error", () => reject(new Problem(0)));
    request.addEventListener("abort", () => reject(signal.reason));
    signal.addEventListener("abort", () => request.abort());
    within(STUCK_MS);
    request.send(file);
  });
}

/** @param {XMLHttpRequest} request */
function problemOf(request) {
  /** @type {Partial<ProblemBody>} */
  let told = { title: `The service answered ${request.status}.` };
  try {
    told = JSON.parse(request.responseText);
  } catch {
    // Something between here and the service answered
  }
  const wait = Number.parseInt(request.getResponseHeader("Retry-After") ?? "", 10);
  if (request.status === 401) {
    const event = new CustomEvent("signed-out", { cancelable: true });
    if (window.dispatchEvent(event)) location.assign(loginPath());
  }
  return new Problem(request.status, told, Number.isFinite(wait) ? wait : null);
}
