/* What a session will take, simulated by the service before it is opened. */

import { api } from "../api.js";
import { byId, el, fill } from "../dom.js";
import { count, counted, percent } from "../format.js";

const WIDTH = 360;
const NAMES = 98;
const ROW = 42;
const TOP = 6;
const TICKS = 4;
const RETRIES = 2;
const SCENARIOS = ["right", "useless"];
const WORDS = { right: "the surrogate is right", useless: "the surrogate knows nothing" };
const FEW = 5;

/** Ask for a plan; the policy that is chosen comes first. */
export async function planned(poolId, body, signal) {
  return api("POST", `/v1/pools/${poolId}/planning`, body, { signal, retry: RETRIES });
}

/** Show a plan for the policy that is chosen. */
export function show(plan, policy, pool) {
  const chosen = plan.policies.find((one) => one.policy === policy);
  const rows = plan.policies.filter((one) => one.refused === null);
  fill(
    byId("plan-result"),
    headline(chosen, plan, pool),
    chosen.warning === null ? null : el("p", { class: "notice warning" }, sentence(chosen.warning)),
    el("p", {}, smallest(chosen, plan)),
    rows.some((row) => row.surrogate_right?.labels || row.surrogate_useless.labels)
      ? el("figure", {}, picture(rows, plan, pool), plan.informed ? key() : null)
      : null,
    table(plan, policy),
    el("p", { class: "quiet-text" }, ...assumption(plan)),
  );
  byId("plan-result").hidden = false;
}

function headline(chosen, plan, pool) {
  if (chosen.refused !== null) {
    const least = chosen.refused.smallest_reachable;
    return el(
      "div",
      { class: "notice warning" },
      el("p", {}, `${chosen.policy} cannot be opened for this: ${chosen.refused.detail}.`),
      least === null ? null : el("p", {}, `The smallest width it can reach with this pool is ${short(least)}.`),
    );
  }
  const least = chosen.smallest_width.assumed;
  if (plan.precision !== null && least > plan.precision) {
    return el("p", { class: "figure" }, "out of reach", el("small", {}, `A width of ${short(plan.precision)} takes more items than this pool has: it comes to about ${short(least)}, and judges all of them for it.`));
  }
  const told = chosen.surrogate_right ?? chosen.surrogate_useless;
  return el(
    "div",
    {},
    el("p", { class: "figure" }, figure(told), el("small", {}, told.labels !== null && plan.informed && usesScores(chosen) ? `if ${WORDS.right}; ` : "", details(told, plan, pool))),
    plan.informed && chosen.surrogate_useless.labels !== null && usesScores(chosen)
      ? el("p", {}, `If the surrogate knew nothing: ${figure(chosen.surrogate_useless)}.`)
      : null,
  );
}

function usesScores(chosen) {
  return JSON.stringify(chosen.surrogate_right) !== JSON.stringify(chosen.surrogate_useless);
}

function figure(told) {
  if (told.labels === null) return told.more_than === 0 ? "not simulated" : `more than ${counted(told.more_than, "label")}`;
  return `about ${counted(told.labels.median, "label")}`;
}

function details(told, plan, pool) {
  if (told.labels === null) return "Simulating a whole session took longer than a plan may. A coarser precision can be planned, or this one when the machine has less to do.";
  const parts = [];
  if (told.labels.low !== told.labels.high) {
    parts.push(`${count(told.labels.low)} to ${count(told.labels.high)} in ${told.runs < FEW ? "" : "most of "}${counted(told.runs, "simulated session")}`);
  } else if (told.runs < FEW) parts.push(`from only ${counted(told.runs, "simulated session")}`);
  parts.push(`${percent(told.labels.median / pool.items)} of the pool`);
  let all = parts.join(", ");
  if (told.reached < 1) {
    const end = plan.budget < plan.items ? "the budget was spent" : "all items were judged";
    all += `. In ${percent(1 - told.reached)} of them ${end} before the end was reached; the width was then about ${short(told.width.median)}`;
  }
  return `${all}.`;
}

function smallest(chosen, plan) {
  if (plan.target === "pool") {
    return "There is no smallest width: with all items judged their mean is known exactly.";
  }
  const floor = chosen.smallest_width;
  if (floor === null) return "";
  return (
    `Even with all ${counted(plan.items, "item")} judged, they tell no more of all items like them than a width of ` +
    `${short(floor.assumed)}, or ${short(floor.middle)} if the mean loss is in the middle of the scale.`
  );
}

function assumption(plan) {
  const why = plan.informed ? "" : " No surrogate tells the items apart, so a mean loss has to be assumed.";
  return [
    `Simulated with a mean loss of ${short(plan.assumed_risk)}.${why} A surrogate that is off changes these numbers, never what the session certifies. `,
    el("a", { href: "/docs/planning" }, "What a plan assumes"),
  ];
}

function key() {
  return el("ul", { class: "key" }, SCENARIOS.map((one) => el("li", { class: one }, WORDS[one])));
}

function picture(rows, plan, pool) {
  const told = rows.flatMap((row) => scenariosOf(row, plan).map(([, found]) => found)).filter((found) => found.labels !== null);
  const most = Math.max(1, ...told.map((found) => found.labels.high));
  const step = niceStep(most / TICKS);
  const end = Math.ceil(most / step) * step;
  const x = (labels) => NAMES + ((WIDTH - NAMES - 8) * labels) / end;
  const bottom = TOP + ROW * rows.length;
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, at) => at * step);
  return el(
    "svg",
    { class: "picture", viewBox: `0 0 ${WIDTH} ${bottom + 36}`, role: "img", "aria-label": "Labels to the stop by policy; the table below holds the numbers." },
    rows.map((_, at) => (at % 2 === 0 ? el("rect", { class: "band", x: 0, y: TOP + ROW * at, width: WIDTH, height: ROW }) : null)),
    ticks.map((at) => el("line", { class: "grid-line", x1: x(at), x2: x(at), y1: TOP, y2: bottom })),
    pool.items <= end ? el("line", { class: "whole", x1: x(pool.items), x2: x(pool.items), y1: TOP, y2: bottom }) : null,
    ticks.map((at) => el("text", { class: "quiet", x: x(at), y: bottom + 15, "text-anchor": "middle" }, count(at))),
    el("text", { class: "quiet", x: x(end / 2), y: bottom + 31, "text-anchor": "middle" }, "labels"),
    rows.map((row, at) => marks(row, TOP + ROW * at, x, plan)),
  );
}

function marks(row, top, x, plan) {
  const found = scenariosOf(row, plan);
  const gap = ROW / (found.length + 1);
  return el(
    "g",
    {},
    el("text", { x: 6, y: top + ROW / 2 + 4 }, row.policy),
    found.map(([name, told], at) => mark(name, told, top + gap * (at + 1), x)),
  );
}

function mark(name, told, y, x) {
  if (told.labels === null) return el("text", { class: "quiet", x: x(0) + 4, y: y + 4 }, figure(told));
  const { low, median, high } = told.labels;
  return [
    el("line", { class: name, x1: x(low), x2: x(high), y1: y, y2: y }),
    name === "right"
      ? el("circle", { class: name, cx: x(median), cy: y, r: 5 })
      : el("rect", { class: name, x: x(median) - 4.5, y: y - 4.5, width: 9, height: 9 }),
  ];
}

/* A policy that uses no scores needs the same either way. */
function scenariosOf(row, plan) {
  if (!plan.informed || !usesScores(row)) return [["useless", row.surrogate_useless]];
  return [["right", row.surrogate_right], ["useless", row.surrogate_useless]];
}

function table(plan, policy) {
  const shown = plan.informed ? SCENARIOS : ["useless"];
  return el(
    "table",
    { class: "table" },
    el("caption", {}, "Labels of a session until its stop: the median, and between which most lie"),
    el(
      "thead",
      {},
      el("tr", {}, el("th", { scope: "col" }, "Policy"), shown.map((one) => el("th", { scope: "col", class: "number" }, plan.informed ? `If ${WORDS[one]}` : "Labels"))),
    ),
    el("tbody", {}, plan.policies.map((row) => tableRow(row, shown, row.policy === policy))),
  );
}

function tableRow(row, shown, isPicked) {
  const head = el("th", { scope: "row" }, row.policy, isPicked ? el("span", { class: "visually-hidden" }, " (chosen)") : null);
  const cells = row.refused !== null ? el("td", { colspan: shown.length, class: "number" }, refusedWords(row.refused)) : shown.map((one) => cell(row[`surrogate_${one}`]));
  return el("tr", { class: isPicked ? "picked" : null }, head, cells);
}

function refusedWords(refused) {
  return refused.smallest_reachable === null ? "cannot be opened" : `not below ${short(refused.smallest_reachable)}`;
}

function cell(told) {
  if (told.labels === null) return el("td", { class: "number" }, figure(told).replace(/ labels?$/, ""));
  const { low, median, high } = told.labels;
  const reached = told.reached < 1 ? `, ${percent(told.reached)} arrive` : "";
  const most = told.runs === 1 ? "one session" : `${count(low)}\u2013${count(high)}`;
  return el("td", { class: "number" }, count(median), el("small", {}, `${most}${reached}`));
}

function niceStep(rough) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return [1, 2, 5, 10].map((one) => one * unit).find((one) => one >= rough);
}

function short(value) {
  return String(Number(value.toPrecision(3)));
}

function sentence(words) {
  return `${words[0].toUpperCase()}${words.slice(1)}.`;
}
