/* A link that shows the report to anybody, made on the page of a session. */

import { api, messageOf } from "./api.js";
import { byId, fill, given } from "./dom.js";
import { renew } from "./live.js";
import { showOnce } from "./once.js";

const path = `/v1/sessions/${given("session").id}/shares`;

/** @param {SubmitEvent} event */
async function make(event) {
  event.preventDefault();
  const submit = /** @type {HTMLButtonElement} */ (event.submitter);
  submit.disabled = true;
  fill(byId("share-error"));
  try {
    const seconds = Number(byId("share-life", HTMLSelectElement).value) || null;
    /** @type {NewShare} */
    const share = await api("POST", path, { expires_in_seconds: seconds });
    await renew();
    showOnce(byId("share-badge"), {
      label: "Badge, as Markdown",
      secret: share.markdown,
      words: "A badge with the result, for a page of a repository.",
    });
    showOnce(byId("share-link"), {
      label: "Link to the report",
      secret: share.url,
      words: "Both are shown this once.",
    });
  } catch (error) {
    fill(byId("share-error"), messageOf(error));
  }
  submit.disabled = false;
}

byId("share").addEventListener("submit", make);
