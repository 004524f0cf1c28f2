/* The page of a session that seeks the best of several systems: a ladder that follows it live. */

import { byId, el, fill, given } from "./dom.js";
import { count, percent, sure } from "./format.js";
import { Actions } from "./session/actions.js";
import { head, keepLooking, live, lookAtWorkers, say } from "./session/frame.js";
import { bestFigures, ladder, placesOf } from "./session/ladder.js";
import { planTable } from "./session/plan.js";

/** @type {OpenedBest} */
const opened = given("opened");
/** @type {BestSession} */
let session = given("session");

const actions = new Actions(session, given("scopes"), (changed) => {
  if (changed.sequence >= session.sequence) show(/** @type {BestSession} */ (changed));
});

/** @param {BestSession} latest */
function show(latest) {
  session = latest;
  head(session, opened.pool, `best of ${session.best.systems.length} systems on the pool`);
  say("sides", placesOf(session));
  fill(byId("figures"), bestFigures(session));
  fill(byId("ladder"), ladder(session, opened.score.unit === "share"));
  actions.show(session);
}

const { plan, score } = opened;
const most = score.better === "lower" ? "least" : "highest";
fill(
  byId("plan"),
  planTable([
    ["Asks", `which of ${plan.systems.length} systems has the ${most} ${score.name} on the pool`],
    ["Systems", plan.systems.join(", ")],
    ["Pool", opened.pool],
    ["Items", count(plan.items)],
    ["Losses from", `${plan.lower} to ${plan.upper}`],
    ["Confidence", `${sure(plan.alpha)} (alpha ${plan.alpha})`],
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
keepLooking(
  () => lookAtWorkers(session),
  () => session.state !== "closed",
);
live(
  session.id,
  ({ session: latest }) => show(/** @type {BestSession} */ (latest)),
  () => session.state === "closed",
);
performance.mark("usable");
