/* The table of sessions: a row each, which narrow screens show as a card. */

import { html, nothing } from "../../vendor/lit-html/lit-html.js";
import { repeat } from "../../vendor/lit-html/directives/repeat.js";
import {
  ago,
  current,
  isWide,
  lowerEnd,
  nameOf,
  number,
  progressOf,
  resolutionOf,
  stateOf,
  telling,
  upperEnd,
} from "../format.js";
import { span } from "../span.js";

/**
 * @typedef {object} Row
 * @property {AnySession} session
 * @property {Node[] | null} bar made once for what the session is now
 */

/**
 * @typedef {object} View
 * @property {Row[]} rows
 * @property {string} order
 * @property {string | null} editing the session whose tags are being changed
 * @property {boolean} manages
 * @property {(order: string) => void} sort
 * @property {(id: string | null) => void} edit
 * @property {(event: SubmitEvent, id: string) => void} file
 * @property {(tag: string) => string} tagged where the sessions of a tag are
 */

/** @type {[name: string, key: string | null][]} */
const COLUMNS = [
  ["Session", "name"],
  ["Score", "score"],
  ["Progress", "progress"],
  ["State", "state"],
  ["Owner", "owner"],
  ["Tags", null],
  ["Last activity", "active"],
];

const LARGEST_FIRST = ["active", "progress"];

/**
 * The order that a click on a column asks for: again, the other way round; the newest first, and
 * what is furthest.
 *
 * @param {string} key
 * @param {string} order
 */
function next(key, order) {
  const ways = [key, `-${key}`];
  if (LARGEST_FIRST.includes(key)) ways.reverse();
  return order === ways[0] ? ways[1] : ways[0];
}

/** @param {View} view */
export function table(view) {
  return html`<table class="table sessions" role="table" aria-label="Sessions">
    <thead role="rowgroup">
      <tr role="row">
        ${COLUMNS.map(([name, key]) => heading(name, key, view))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${repeat(
        view.rows,
        (row) => row.session.id,
        (row) => line(row, view),
      )}
    </tbody>
  </table>`;
}

/**
 * @param {string} name
 * @param {string | null} key
 * @param {View} view
 */
function heading(name, key, { order, sort }) {
  if (key === null) return html`<th role="columnheader" scope="col">${name}</th>`;
  const way = order === key ? "ascending" : order === `-${key}` ? "descending" : nothing;
  return html`<th role="columnheader" scope="col" aria-sort=${way}>
    <button type="button" class="sort" @click=${() => sort(next(key, order))}>${name}</button>
  </th>`;
}

/**
 * @param {Row} row
 * @param {View} view
 */
function line({ session, bar }, view) {
  const { word, kind } = stateOf(session);
  const active = session.active_at ?? session.created_at;
  return html`<tr role="row" data-id=${session.id}>
    <th role="rowheader" scope="row">
      <a href="/sessions/${session.id}"><bdi>${nameOf(session)}</bdi></a>
    </th>
    <td role="cell" class="score">${score(session, bar)}</td>
    <td role="cell" class="progress">${progress(session)}</td>
    <td role="cell">
      <span class="badge ${kind}"
        >${word}${session.origin ? ", pushed" : ""}${session.archived ? ", archived" : ""}</span
      >
    </td>
    <td role="cell" class="owner" data-name=${session.owner ? "Owner" : nothing}>
      ${session.owner ? html`<bdi>${session.owner}</bdi>` : nothing}
    </td>
    <td role="cell" class="tags">${tags(session, view)}</td>
    <td role="cell" class="active" data-name="Last activity">
      <time datetime=${active}>${ago(Date.parse(active))}</time>
    </td>
  </tr>`;
}

/**
 * What a session says of its score: nothing before the first label.
 *
 * @param {AnySession} session
 * @param {Node[] | null} bar
 */
function score(session, bar) {
  if (session.rounds.in_interval === 0) return nothing;
  if (bar === null) return html`<span class="said">${session.sentence}</span>`;
  const own = /** @type {Session} */ (session);
  const { name, shift, sign } = telling(own);
  const { estimate, lower, upper } = current(own);
  const resolution = resolutionOf(own);
  return html`<p class="figures-line">
      <strong
        >${lowerEnd(lower, resolution, shift)}${lower < 0 ? " to " : " – "}${upperEnd(upper, resolution, shift)}${sign}</strong
      >
      <span class=${isWide(own) ? "quiet-text" : nothing}
        >about ${number(estimate, resolution, shift)}${sign}</span
      >
    </p>
    ${bar} ${name === null ? nothing : html`<bdi class="quiet-text">${name}</bdi>`}`;
}

/** @param {AnySession} session */
function progress(session) {
  const { share, told } = progressOf(session);
  return html`<span>${told}</span> ${
      share === null
        ? nothing
        : html`<progress
            class="bar"
            max="100"
            .value=${Math.round(100 * share)}
            aria-label="Labels of ${nameOf(session)}, of those likely to be needed"
          ></progress>`
    }`;
}

/**
 * @param {AnySession} session
 * @param {View} view
 */
function tags(session, { editing, manages, edit, file, tagged }) {
  const own = session.tags;
  if (editing === session.id) {
    return html`<form
      class="filing"
      @submit=${(/** @type {SubmitEvent} */ event) => file(event, session.id)}
      @keydown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && edit(null)}
    >
      <label for="tags">Tags of ${nameOf(session)}, with commas between</label>
      <input id="tags" name="tags" autocomplete="off" .value=${own.join(", ")} />
      <button class="button small primary">Save</button>
      <button type="button" class="button small" @click=${() => edit(null)}>Cancel</button>
    </form>`;
  }
  return html`${own.map((tag) => html`<a class="tag" href=${tagged(tag)}><bdi>${tag}</bdi></a> `)}
  ${
    manages
      ? html`<button
          type="button"
          class="button quiet small edit"
          aria-label="${own.length > 0 ? "Edit the tags of" : "Add a tag to"} ${nameOf(session)}"
          @click=${() => edit(session.id)}
        >
          ${own.length > 0 ? "Edit" : "Add a tag"}
        </button>`
      : nothing
  }`;
}

/**
 * A row of a session, with the bar of its interval where it has a single one.
 *
 * @param {AnySession} session
 * @returns {Row}
 */
export function rowOf(session) {
  const single = session.estimate !== null && session.rounds.in_interval > 0;
  const made = single ? span(/** @type {Session} */ (session)) : null;
  return { session, bar: made };
}
