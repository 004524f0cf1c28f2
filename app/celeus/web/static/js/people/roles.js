/* What people and programs may do, in the words of a team. */

/** @typedef {{ scope: Scope, does: string, help: string }} Role */

/** @type {Role[]} */
export const ROLES = [
  {
    scope: "label",
    does: "labels",
    help: "Judges items and sees no result, so that nothing sways them.",
  },
  {
    scope: "read",
    does: "views",
    help: "Sees sessions, results and reports, and changes nothing. Labellers should not see these.",
  },
  {
    scope: "manage",
    does: "manages",
    help: "Uploads pools, opens and closes sessions, corrects labels, and sees all results.",
  },
  {
    scope: "admin",
    does: "administers",
    help: "May do everything, and invites and removes people.",
  },
];

/**
 * What somebody does, by their scopes: "labels and views".
 *
 * @param {readonly Scope[]} scopes
 */
export function does(scopes) {
  const words = ROLES.filter((role) => scopes.includes(role.scope)).map((role) => role.does);
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : words.join("");
}

/**
 * Until when something works, in days or hours from now.
 *
 * @param {string | null} end
 * @param {number} now
 */
export function until(end, now = Date.now()) {
  if (end === null) return "no end";
  const hours = (Date.parse(end) - now) / 3_600_000;
  if (hours <= 0) return "over";
  if (hours < 1) return "less than an hour left";
  const [left, unit] = hours < 48 ? [Math.round(hours), "hour"] : [Math.round(hours / 24), "day"];
  return `${left} ${unit}${left === 1 ? "" : "s"} left`;
}
