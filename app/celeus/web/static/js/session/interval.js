/* The chart of a session's interval, and the card on its surrogate. */

import { byId, fill, given, only } from "../dom.js";
import { swap } from "../live.js";
import { chartTable, IntervalChart } from "./chart.js";
import { Track } from "./track.js";

const LEAST_WAIT_MS = 5_000;
const LONG_MS = 120_000;
const NEWS_SHARE = 0.02;
const CLOSE_UP_BELOW = 0.5;

/** @type {Session} */
let session = given("session");
const track = new Track();
const chart = new IntervalChart(byId("chart"), byId("chart-readout"), track, session);
let asked = { round: -1, revision: 0, at: 0 };

function show() {
  byId("chart").classList.toggle("waiting", track.length === 0);
  byId("view").hidden = byId("chart-table").hidden = track.length === 0;
  chart.show(session);
  showTable();
}

function showTable() {
  const place = byId("chart-table", HTMLDetailsElement);
  if (place.open) fill(only(place, ".table-scroll"), chartTable(track, session));
}

/** @param {News} news */
export function told({ session: latest, points, reset }) {
  session = /** @type {Session} */ (latest);
  track.take(points, reset);
  show();
}

/** The card costs more the longer the session is: asked for when it may look different. */
export async function lookAtSurrogate() {
  const { round, revision } = session;
  const news =
    round - asked.round >= Math.max(1, NEWS_SHARE * asked.round) || revision !== asked.revision;
  if (!news || Date.now() - asked.at < LEAST_WAIT_MS) return;
  asked = { round, revision, at: Date.now() };
  await showSurrogate();
}

function showSurrogate() {
  const chosen = document.querySelector("input[name=health]:checked");
  const by = chosen instanceof HTMLInputElement ? chosen.value : "curve";
  return swap("health", `/sessions/${session.id}/surrogate?by=${by}`, { wait: LONG_MS });
}

function showView() {
  chart.whole = only(document, "input[name=view]:checked", HTMLInputElement).value === "whole";
}

for (const input of document.querySelectorAll("input[name=view]"))
  input.addEventListener("change", showView);
byId("health").addEventListener("change", () => showSurrogate().catch(() => {}));
byId("chart-table").addEventListener("toggle", showTable);
const { scale, width } = session;
const view = width < CLOSE_UP_BELOW * (scale.upper - scale.lower) ? "close" : "whole";
only(document, `input[name=view][value=${view}]`, HTMLInputElement).checked = true;
showView();
show();
