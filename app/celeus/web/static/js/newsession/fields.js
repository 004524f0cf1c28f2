/* The fields of the form: what stands in them, and what is wrong with it. */

import { byId, el } from "../dom.js";

/** Something a person has to correct before anything is asked of the service. */
export class Unusable extends Error {
  constructor(id, message) {
    super(message);
    this.id = id;
  }
}

const PLACES = {
  threshold: "threshold",
  side: "side",
  lower: "loss-lower",
  upper: "loss-upper",
};

/** The text of a field. */
export function text(id) {
  return byId(id).value.trim();
}

/** The number in a field; null where it may be left empty and is. */
export function numberIn(id, { optional = false, whole = false } = {}) {
  const given = text(id).replace(",", ".").replace("\u2212", "-");
  if (given === "" && optional) return null;
  const found = given === "" ? NaN : Number(given);
  if (!Number.isFinite(found)) throw new Unusable(id, "This has to be a number.");
  if (whole && !Number.isInteger(found)) throw new Unusable(id, "This has to be a whole number.");
  return found;
}

/** The value of the chosen radio button. */
export function picked(name) {
  return document.querySelector(`input[name="${name}"]:checked`)?.value ?? null;
}

/** The id of the element that a refusal's field stands in; null where there is none. */
export function placeOf(field, own = {}) {
  const last = (field ?? "").split(".").at(-1);
  const id = own[last] ?? PLACES[last] ?? (/^\d+$/.test(last) ? "threshold" : last);
  return id && document.getElementById(id) ? id : null;
}

/** Say beside a field what is wrong with it. */
export function blame(id, message) {
  const field = byId(id);
  const told = el("p", { class: "error", id: `${id}-wrong` }, message);
  document.getElementById(told.id)?.remove();
  (field.closest(".field") ?? field).append(told);
  field.setAttribute("aria-invalid", "true");
  const described = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((one) => one && one !== told.id);
  field.setAttribute("aria-describedby", [...described, told.id].join(" "));
  for (let outer = field.closest("details"); outer !== null; outer = outer.parentElement.closest("details")) outer.open = true;
}

/** Take back all that was said within an element. */
export function clear(within) {
  for (const told of within.querySelectorAll("p.error[id$='-wrong']")) {
    const field = document.getElementById(told.id.slice(0, -"-wrong".length));
    field?.removeAttribute("aria-invalid");
    const described = (field?.getAttribute("aria-describedby") ?? "").split(" ").filter((one) => one && one !== told.id);
    if (described.length > 0) field.setAttribute("aria-describedby", described.join(" "));
    else field?.removeAttribute("aria-describedby");
    told.remove();
  }
}

/** Lead to the first field that is wrong. */
export function goToWrong(within) {
  within.querySelector("[aria-invalid=true]")?.focus();
}

/** A key for a request; the same while what it asks stays the same, so that it is done once. */
export function keyring() {
  let asked = null;
  let key = null;
  return (content) => {
    const now = JSON.stringify(content);
    if (now !== asked) {
      asked = now;
      key = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    }
    return key;
  };
}
