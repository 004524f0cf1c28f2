/* A round: its item as judges see it, all that was said of it, and a form to correct that. */

import { api, messageOf } from "./api.js";
import { announce, byId, el, fill, given } from "./dom.js";
import { outside, preferred, systemName } from "./format.js";
import { drawView } from "./item/payload.js";
import { Correction } from "./judgement/correction.js";
import { watch } from "./silence.js";

const WORDS = {
  draw: "drawn",
  observation: "judged",
  unjudgeable: "cannot be judged",
  amendment: "corrected",
  rating: "judged by a rater",
};

/** @type {AnySession} */
const session = given("session");
const round = given("round");
/** @type {Task} */
const task = given("task");
const names = session.systems ?? { a: "A", b: "B" };
const form = new Correction(task, names);
/** @type {string[]} */
const scopes = given("scopes");

async function load() {
  try {
    show(await api("GET", `/v1/sessions/${session.id}/rounds/${round}`));
  } catch (problem) {
    byId("about").textContent = `The round could not be loaded: ${messageOf(problem)}`;
  }
}

/** @param {RoundHistory} history */
function show(history) {
  const { item } = history;
  fill(byId("item"), el("bdi", {}, item.id));
  const folded = history.in_interval ? "in the interval" : outside(session);
  const chance = `drawn with probability ${history.probability.toPrecision(3)}`;
  const group = Object.values(history.groups ?? {}).join(", ");
  byId("about").textContent = [`Round ${round}`, chance, folded, group]
    .filter((one) => one !== "")
    .join(" · ");
  const stood = history.left === "b" ? [item.b, item.a] : [item.a, item.b];
  const [left, right] = stood.map((one) => one ?? null);
  const answers = item.answers ? Object.values(item.answers) : null;
  const draw = { round, item, left: left ?? null, right: right ?? null, answers, expires_at: "" };
  const [first, second] = history.left === "b" ? [names.b, names.a] : [names.a, names.b];
  fill(byId("shown"), drawView(draw, false, 1, [`Left: ${first}`, `Right: ${second}`]));
  /** @type {[at: string, line: Child[]][]} */
  const lines = [
    ...history.events.map((one) => /** @type {[string, Child[]]} */ ([one.at, eventLine(one)])),
    ...history.comments.map((one) => /** @type {[string, Child[]]} */ ([one.at, commentLine(one)])),
  ];
  lines.sort(([one], [other]) => (one < other ? -1 : 1));
  fill(
    byId("history"),
    lines.map(([at, line]) => el("li", {}, ...line, " ", time(at))),
  );
  const judged = history.events.some((one) => one.kind !== "draw");
  const plain = session.best === null && session.table === null && session.raters === null;
  const open = session.state !== "closed" && !session.archived;
  byId("correction").hidden = !(judged && plain && open && scopes.includes("manage"));
}

/** @param {RoundHistory["events"][number]} event */
function eventLine(event) {
  const who = event.kind === "amendment" ? (event.author ?? event.person) : event.person;
  /** @type {Child[]} */
  const line = [el("strong", {}, WORDS[event.kind])];
  if (who !== null) line.push(event.kind === "draw" ? " for " : " by ", el("bdi", {}, who));
  if (event.unjudgeable !== null) line.push(": cannot be judged, “", event.unjudgeable, "”");
  else if (event.losses !== null)
    line.push(
      ": ",
      Object.entries(event.losses)
        .map(([name, loss]) => `${systemName(session, name)} ${loss ?? "cannot be told"}`)
        .join(", "),
    );
  else if (event.loss !== null) line.push(`: loss ${event.loss}`);
  if (event.preference !== null) line.push(`, ${preferred(session, event)}`);
  if (event.label !== null) line.push(`, class ${event.label}`);
  if (event.reason !== null) line.push(" — “", event.reason, "”");
  return line;
}

/** @param {RoundHistory["comments"][number]} comment */
function commentLine(comment) {
  const who = comment.rater ?? comment.person ?? comment.worker;
  return [el("strong", {}, "comment"), " by ", el("bdi", {}, who), ": “", comment.comment, "”"];
}

/** @param {string} at */
function time(at) {
  return el("time", { datetime: at, class: "quiet-text" }, new Date(at).toLocaleString());
}

/** @param {SubmitEvent} event */
async function correct(event) {
  event.preventDefault();
  const lost = byId("unjudgeable", HTMLInputElement).checked;
  const reason = byId("reason", HTMLInputElement).value;
  const said = lost ? { unjudgeable: reason } : form.said();
  byId("send", HTMLButtonElement).disabled = true;
  byId("correct-error").textContent = "";
  try {
    await api("POST", `/v1/sessions/${session.id}/amendments`, { round, reason, ...said });
    byId("correct", HTMLFormElement).reset();
    await load();
    announce("The judgement is corrected.");
  } catch (problem) {
    byId("correct-error").textContent = messageOf(problem);
  } finally {
    byId("send", HTMLButtonElement).disabled = false;
  }
}

form.draw(byId("said"));
byId("unjudgeable", HTMLInputElement).addEventListener("change", (event) => {
  const box = event.currentTarget;
  form.disable(box instanceof HTMLInputElement && box.checked);
});
byId("correct", HTMLFormElement).addEventListener("submit", correct);
watch();
await load();
performance.mark("usable");
