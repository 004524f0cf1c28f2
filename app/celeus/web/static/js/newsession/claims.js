/* What is asked of a table of claims: metrics, groups, a precision each, and the account. */

import { byId, el, fill } from "../dom.js";
import { counted } from "../format.js";
import { numberIn, optionalNumber, picked, text } from "./fields.js";

const OF_GROUP = "group";
const PRESET = 0.05;

/**
 * The metrics of a pool, each by its score; of one loss that one, without a name.
 *
 * @param {Pool} pool
 * @returns {{ name: string | null, score: string, width: number }[]}
 */
function metricsOf(pool) {
  if (pool.metrics)
    return Object.entries(pool.metrics).map(([name, { score, lower, upper }]) => ({
      name,
      score: score.name,
      width: upper - lower,
    }));
  const { lower, upper } = pool.loss ?? { lower: 0, upper: 1 };
  return [{ name: null, score: pool.score?.name ?? "mean loss", width: upper - lower }];
}

/**
 * The group columns that claims may be made of, with how many values they have.
 *
 * @param {Pool} pool
 * @returns {[name: string, values: number][]}
 */
function columnsOf(pool) {
  if (pool.systems || pool.based_on || pool.columns.includes("weight")) return [];
  /** @type {[string, number][]} */
  const columns = Object.entries(pool.group_columns).map(([name, values]) => [name, values.length]);
  const own = pool.groups.length > 0 && !(OF_GROUP in pool.group_columns);
  return own ? [...columns, [OF_GROUP, pool.groups.length]] : columns;
}

/**
 * Ask for what can be claimed about a pool; nothing of it shows where one claim is all there is.
 *
 * @param {Pool} pool
 */
export function offer(pool) {
  const columns = columnsOf(pool);
  byId("groups-asked").hidden = columns.length === 0;
  fill(
    byId("group-columns"),
    columns.map(([name, values]) =>
      el(
        "label",
        { class: "choice" },
        el("input", { type: "checkbox", name: "groups", value: name }),
        el(
          "span",
          {},
          el("strong", {}, el("bdi", {}, name)),
          el("span", { class: "quiet-text" }, ` ${counted(values, "value")}`),
        ),
      ),
    ),
  );
  const metrics = metricsOf(pool);
  fill(
    byId("widths"),
    metrics.map(({ name, score, width }, at) => widthsOf(name, score, width, at)),
  );
  fill(
    byId("question_metric"),
    metrics.map(({ name }) => el("option", { value: name ?? "" }, name ?? "")),
  );
}

/**
 * @param {string | null} name
 * @param {string} score
 * @param {number} width
 * @param {number} at
 */
function widthsOf(name, score, width, at) {
  const preset = String(Number((PRESET * width).toPrecision(3)));
  return el(
    "fieldset",
    {},
    name === null
      ? null
      : el(
          "legend",
          {},
          el("bdi", {}, name),
          score === name ? null : [": ", el("bdi", {}, score)],
          width === 1 ? null : ` (on a scale ${width} wide)`,
        ),
    el(
      "div",
      { class: "fields" },
      name === null ? null : widthField(`width-${at}`, "Over all items", preset, name),
      el(
        "div",
        { "data-groups": "" },
        widthField(`group-width-${at}`, "Within every group", "", name ?? score),
      ),
    ),
  );
}

/**
 * @param {string} id
 * @param {string} words
 * @param {string} value
 * @param {string} of
 */
function widthField(id, words, value, of) {
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, words, el("span", { class: "visually-hidden" }, `, ${of}`)),
    el("input", {
      id,
      type: "text",
      inputmode: "decimal",
      autocomplete: "off",
      placeholder: "as it comes",
      value,
    }),
  );
}

/** The group columns that are chosen. */
function groups() {
  const chosen = document.querySelectorAll("input[name=groups]:checked");
  return [...chosen].map((one) => /** @type {HTMLInputElement} */ (one).value);
}

/**
 * Whether a session on this pool makes several claims.
 *
 * @param {Pool} pool
 */
export function makesTable(pool) {
  return pool.metrics !== null || groups().length > 0;
}

/**
 * Show what the choices so far leave to be asked.
 *
 * @param {Pool} pool
 */
export function fit(pool) {
  const table = makesTable(pool);
  const [grouped, together] = [groups().length > 0, table && picked("account") === "together"];
  for (const part of document.querySelectorAll("[data-table]"))
    part.toggleAttribute("hidden", !table);
  for (const part of document.querySelectorAll("[data-groups]"))
    part.toggleAttribute("hidden", !grouped);
  byId("widths-asked").hidden = !table || (!pool.metrics && !grouped);
  byId("question-metric-field").hidden = !pool.metrics;
  byId("reserve-field").hidden = !together;
}

/**
 * What is asked for, as the service takes it.
 *
 * @param {Pool} pool
 */
export function tableAsked(pool) {
  const chosen = groups();
  const metrics = metricsOf(pool);
  const account = picked("account");
  /** @type {Record<string, unknown>} */
  const asked = { alpha: numberIn("alpha"), account };
  if (chosen.length > 0) asked.groups = chosen;
  const precision = pool.metrics ? widths(metrics, "width") : optionalNumber("precision");
  if (precision !== null) asked.precision = precision;
  if (chosen.length > 0) {
    const within = widths(metrics, "group-width");
    if (within !== null) asked.group_precision = within;
  }
  const side = text("side");
  if (side !== "") {
    const question = { side, threshold: numberIn("threshold") };
    const metric = pool.metrics ? { metric: text("question_metric") } : {};
    const of = chosen.length > 0 && text("question_of") === "groups";
    asked[of ? "group_questions" : "questions"] = [{ ...question, ...metric }];
  }
  const reserve = account === "together" ? optionalNumber("reserve") : null;
  if (reserve !== null) asked.reserve = reserve;
  const budget = optionalNumber("budget", { whole: true });
  if (budget !== null) asked.budget = budget;
  return asked;
}

/**
 * The widths by metric, or the one of a loss without a name; null where all are as they come.
 *
 * @param {ReturnType<typeof metricsOf>} metrics
 * @param {string} field
 */
function widths(metrics, field) {
  const given = metrics.map(({ name }, at) => [name, optionalNumber(`${field}-${at}`)]);
  if (given.every(([, width]) => width === null)) return null;
  return metrics[0].name === null
    ? given[0][1]
    : Object.fromEntries(given.filter(([, width]) => width !== null));
}
