/* The page of a session that makes a table of claims: it follows them live. */

import { api } from "./api.js";
import { byId, el, fill, given } from "./dom.js";
import { count, counted, percent, sure } from "./format.js";
import { Actions } from "./session/actions.js";
import { tableFigures } from "./session/claims.js";
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
let shown = `${session.sequence} plan`;

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
  const order = byId("order", HTMLSelectElement).value;
  const wanted = `${session.sequence} ${order}`;
  if (shown === wanted) return;
  const path = `/sessions/${session.id}/claims?order=${order}`;
  const answer = await api("GET", path, undefined, { retry: 0, raw: true });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  // Where somebody has come to by the keyboard stays
  const links = () => [...byId("claims").querySelectorAll("a")];
  const focused = links().findIndex((link) => link === document.activeElement);
  byId("claims").replaceChildren(...page.body.childNodes);
  links()[focused]?.focus({ preventScroll: true });
  shown = wanted;
}

byId("order").addEventListener("change", lookAtClaims);
const { account } = session.table;
const { plan } = opened;
fill(
  byId("plan"),
  planTable([
    ["Metrics", session.table.metrics.map(({ metric }) => metric).join(", ")],
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
keepLooking(lookAtClaims, () => open() || !shown.startsWith(`${session.sequence} `));
keepLooking(() => lookAtWorkers(session), open);
live(
  session.id,
  ({ session: latest }) => show(/** @type {TableSession} */ (latest)),
  () => session.state === "closed",
);
performance.mark("usable");
