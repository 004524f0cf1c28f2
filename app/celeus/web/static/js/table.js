/* The page of a session that makes a table of claims: it follows them live. */

import { api } from "./api.js";
import { byId, el, fill, given, only } from "./dom.js";
import { count, counted, percent, sure } from "./format.js";
import { Actions } from "./session/actions.js";
import { claimList, heatMap, tableFigures } from "./session/claims.js";
import { head, keepLooking, live, lookAtWorkers } from "./session/frame.js";
import { planTable } from "./session/plan.js";

const ACCOUNTS = {
  each: "each interval by itself",
  together: "all intervals at once",
  selected: "those picked after looking, too",
  closed: "all answers yes at once",
};

/** @type {OpenedTable} */
const opened = given("opened");
/** @type {TableSession} */
let session = given("session");
/** @type {TableClaim[]} */
let claims = [];
let asked = -1;

const actions = new Actions(session, given("scopes"), (changed) => {
  if (changed.sequence >= session.sequence) show(/** @type {TableSession} */ (changed));
});

/** @param {TableSession} latest */
function show(latest) {
  session = latest;
  head(session, opened.pool, `${counted(session.table.claims, "claim")} on the pool`);
  fill(byId("figures"), tableFigures(session));
  const { promises, reserve, later } = session.table;
  const added = later ? `; ${counted(later, "claim")} added so far` : "";
  const account =
    reserve || later
      ? [`${Number(reserve.toPrecision(6))} of alpha is left for claims added later${added}.`]
      : [];
  fill(
    byId("promises"),
    [promises.one, promises.all, promises.picked, ...account].map((words) => el("li", {}, words)),
  );
  actions.show(session);
}

/* All of them may be hundreds: asked for a while after the stream said that something is new. */
async function lookAtClaims() {
  if (asked === session.sequence) return;
  const { sequence } = session;
  const found = await api("GET", `/v1/sessions/${session.id}/claims`, undefined, { retry: 0 });
  claims = found.data;
  asked = sequence;
  showClaims();
}

function showClaims() {
  const metric = only(document, "input[name=metric]:checked", HTMLInputElement).value;
  const own = claims.filter((one) => one.metric === metric);
  const order = byId("order", HTMLSelectElement).value;
  /** @type {NodeListOf<HTMLDetailsElement>} */
  const unfolded = byId("claims").querySelectorAll("details[open]");
  const columns = new Set([...unfolded].map((one) => one.dataset.column ?? ""));
  fill(byId("claims"), claimList(own, order, columns));
  const first = claims.filter((one) => one.added === null);
  fill(byId("heat"), heatMap(first));
}

const metrics = session.table.metrics.map((one) => one.metric);
fill(
  byId("metrics"),
  el("legend", { class: "visually-hidden" }, "The metric whose claims are shown"),
  metrics.map((metric, at) =>
    el(
      "label",
      {},
      el("input", {
        type: "radio",
        name: "metric",
        value: metric,
        checked: at === 0,
        on: { change: showClaims },
      }),
      el("span", {}, el("bdi", {}, metric)),
    ),
  ),
);
byId("metrics").hidden = metrics.length === 1;
byId("heat-card").hidden = session.table.groups.length === 0;
byId("order").addEventListener("change", showClaims);
byId("csv").setAttribute("href", `/v1/sessions/${session.id}/claims?format=csv`);
const { account } = session.table;
const { plan } = opened;
fill(
  byId("plan"),
  planTable([
    ["Metrics", metrics.join(", ")],
    ["Groups", session.table.groups.join(", ") || "none"],
    ["Claims", count(session.table.claims)],
    ["Pool", el("bdi", {}, opened.pool)],
    ["Items", count(plan.items)],
    ["Confidence", `${sure(plan.alpha)} (alpha ${plan.alpha}), ${ACCOUNTS[account]}`],
    ["Budget at opening", `${count(plan.budget)} draws`],
    ["Changes of this", session.fixed ? "none: fixed at opening" : "allowed, and counted"],
    ["Share of uniform draws", percent(plan.beta)],
    ["Leases last", `${count(session.lease_seconds)} s`],
    ["Method", plan.method_version],
    ["Session", el("code", {}, session.id)],
    ["Plan’s digest", el("code", {}, opened.plan_digest)],
    ["Commitment to the seed", el("code", {}, plan.commitment)],
  ]),
);
show(session);
const open = () => session.state !== "closed";
keepLooking(lookAtClaims, () => open() || asked !== session.sequence);
keepLooking(() => lookAtWorkers(session), open);
live(
  session.id,
  ({ session: latest }) => show(/** @type {TableSession} */ (latest)),
  () => session.state === "closed",
);
performance.mark("usable");
