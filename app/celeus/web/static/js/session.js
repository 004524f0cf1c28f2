/* The page of one session: everything on it follows the session live. */

import { api } from "./api.js";
import { byId, fill, given, only } from "./dom.js";
import { targetOf } from "./format.js";
import { Actions } from "./session/actions.js";
import { chartKey, chartTable, IntervalChart } from "./session/chart.js";
import { figures, ratersOf, sidesOf } from "./session/figures.js";
import { head, keepLooking, live, lookAtWorkers, say } from "./session/frame.js";
import { health } from "./session/health.js";
import { plan } from "./session/plan.js";
import { Track } from "./session/track.js";

const LEAST_WAIT_MS = 5_000;
const LONG_MS = 120_000;
const NEWS_SHARE = 0.02;
const CLOSE_UP_BELOW = 0.5;

/** @type {Opened} */
const opened = given("opened");
const track = new Track();
/** @type {Session} */
let session = given("session");
const chart = new IntervalChart(byId("chart"), byId("chart-readout"), track, session);
/** @type {Surrogate | null} */
let surrogate = null;
let asked = { round: -1, revision: 0, at: 0 };
let provisionalOf = "";

const actions = new Actions(session, given("scopes"), (changed) => {
  if (changed.sequence >= session.sequence) show(/** @type {Session} */ (changed));
});

/** @param {Session} latest */
function show(latest) {
  session = latest;
  head(session, opened.pool, `${session.policy} · ${targetOf(session)}`);
  say("sides", sidesOf(session));
  say("raters", ratersOf(session));
  if (session.rounds.waiting === 0) say("provisional", null);
  fill(byId("figures"), figures(session, opened));
  fill(byId("chart-key"), track.length === 0 ? null : chartKey(session));
  byId("chart").classList.toggle("waiting", track.length === 0);
  byId("view").hidden = byId("chart-table").hidden = track.length === 0;
  chart.show(session);
  showTable();
  actions.show(session);
}

function showTable() {
  const place = byId("chart-table", HTMLDetailsElement);
  if (place.open) fill(only(place, ".table-scroll"), chartTable(track, session));
}

function showHealth() {
  if (surrogate === null) return;
  byId("health-by").hidden = surrogate.strata.length < 2 || surrogate.labels === 0;
  const by = only(document, "input[name=health]:checked", HTMLInputElement).value;
  const open = byId("health").querySelector("details")?.open ?? false;
  fill(
    byId("health"),
    health(surrogate, session, by === "strata" ? "strata" : "curve", opened.contrast),
  );
  only(byId("health"), "details", HTMLDetailsElement).open = open;
}

/** @param {News} news */
function told({ session: latest, points, reset }) {
  track.take(points, reset);
  show(/** @type {Session} */ (latest));
}

/* Its cost grows with the session, and it moves slowly: asked for when it may look different. */
async function lookAtSurrogate() {
  const { round, revision } = session;
  const news =
    round - asked.round >= Math.max(1, NEWS_SHARE * asked.round) || revision !== asked.revision;
  if (!news || Date.now() - asked.at < LEAST_WAIT_MS) return;
  asked = { round, revision, at: Date.now() };
  surrogate = await api("GET", `/v1/sessions/${session.id}/surrogate`, undefined, {
    retry: 0,
    wait: LONG_MS,
  });
  showHealth();
}

/* The stream tells of every label, and has no interval that counts open draws at their worst. */
async function lookAtProvisional() {
  if (session.rounds.waiting === 0 || session.ledger_head === provisionalOf) return;
  const latest = await api("GET", `/v1/sessions/${session.id}`, undefined, { retry: 0 });
  provisionalOf = latest.ledger_head;
  if (session.rounds.waiting > 0) say("provisional", latest.provisional?.sentence ?? null);
}

for (const input of document.querySelectorAll("input[name=view]")) {
  input.addEventListener("change", () => {
    chart.whole = only(document, "input[name=view]:checked", HTMLInputElement).value === "whole";
  });
}
for (const input of document.querySelectorAll("input[name=health]"))
  input.addEventListener("change", showHealth);
byId("chart-table").addEventListener("toggle", showTable);

const scale = session.scale ?? { lower: 0, upper: 1 };
const view = session.width < CLOSE_UP_BELOW * (scale.upper - scale.lower) ? "close" : "whole";
only(document, `input[name=view][value=${view}]`, HTMLInputElement).checked = true;
chart.whole = view === "whole";
fill(byId("plan"), plan(opened, session));
show(session);
const wanted = () => session.state !== "closed" || surrogate === null;
keepLooking(lookAtSurrogate, wanted);
keepLooking(() => lookAtWorkers(session), wanted);
keepLooking(lookAtProvisional, wanted);
live(session.id, told, () => session.state === "closed");
performance.mark("usable");
