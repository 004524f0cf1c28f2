/* The fields of the form: what stands in them, and what is wrong with it. */

import { byId, el, only } from "../dom.js";

/** Something a person has to correct before anything is asked of the service. */
export class Unusable extends Error {
  /**
   * @param {string} id
   * @param {string} message
   */
  constructor(id, message) {
    super(message);
    this.id = id;
  }
}

/**
 * The text of a field.
 *
 * @param {string} id
 */
export function text(id) {
  return fieldValue(id).trim();
}

/** The value of an input or a choice. */
export function fieldValue(/** @type {string} */ id) {
  const field = byId(id);
  const kinds = [HTMLInputElement, HTMLSelectElement, HTMLTextAreaElement];
  if (kinds.some((kind) => field instanceof kind))
    return /** @type {HTMLInputElement} */ (field).value;
  throw new Error(`#${id} is no field`);
}

/**
 * The number in a field.
 *
 * @param {string} id
 */
export function numberIn(id, { whole = false } = {}) {
  const given = text(id).replace(",", ".").replace("\u2212", "-");
  const number = given === "" ? NaN : Number(given);
  if (!Number.isFinite(number)) throw new Unusable(id, "This must be a number.");
  if (whole && !Number.isInteger(number)) throw new Unusable(id, "This must be a whole number.");
  return number;
}

/**
 * Return whether nothing hides an element but a fold that somebody can open.
 *
 * @param {Element | null} element
 * @returns {boolean}
 */
export function isShown(element) {
  if (element === null) return true;
  return getComputedStyle(element).display !== "none" && isShown(element.parentElement);
}

/**
 * Return the fields with a name that are shown in these elements, but for what is not chosen.
 *
 * @param {string[]} ids
 * @returns {HTMLInputElement[]}
 */
export function shownFields(ids) {
  const fields = ids.flatMap((id) => [
    .../** @type {NodeListOf<HTMLInputElement>} */ (byId(id).querySelectorAll("[name]")),
  ]);
  return fields.filter(
    (field) => (field.checked || !["radio", "checkbox"].includes(field.type)) && isShown(field),
  );
}

/**
 * Return what stands in fields as the body of a request; what is left empty is left out.
 *
 * A name with a dot is a member of an object; boxes with a value are members of a list.
 *
 * @param {HTMLInputElement[]} fields
 */
export function bodyOf(fields) {
  /** @type {Record<string, any>} */
  const body = {};
  for (const field of fields) {
    const value = valueOf(field);
    const [, name, member] = /^([^.]+)\.?(.*)$/s.exec(field.name) ?? [];
    if (value === null) continue;
    if (member !== "") body[name] = { ...body[name], [member]: value };
    else body[name] = Array.isArray(value) ? [...(body[name] ?? []), ...value] : value;
  }
  return body;
}

/**
 * @param {HTMLInputElement} field
 * @returns {unknown}
 */
function valueOf({ id, type, value, inputMode, required }) {
  if (type === "checkbox") return value === "on" ? true : [value];
  if (inputMode !== "" && (required || value.trim() !== ""))
    return numberIn(id, { whole: inputMode === "numeric" });
  if (value.trim() === "") return null;
  return type === "textarea" ? value : value.trim();
}

/**
 * The value of the chosen radio button.
 *
 * @param {string} name
 */
export function picked(name) {
  return only(document, `input[name="${name}"]:checked`, HTMLInputElement).value;
}

/**
 * The id of the element that a refusal's field stands in; null where there is none.
 *
 * @param {string | null} field
 */
export function placeOf(field) {
  const last = (field ?? "").replace(/^.*\./s, "");
  // The numbers of a list are in no name
  const name = (field ?? "").replace(/\.\d+(?=\.|$)/g, "");
  const named = document.querySelector(`[name="${CSS.escape(name)}"]`)?.id;
  const id = named || (/^\d+$/.test(last) ? "threshold" : last);
  return id && document.getElementById(id) ? id : null;
}

/**
 * Say beside a field what is wrong with it.
 *
 * @param {string} id
 * @param {string} message
 */
export function blame(id, message) {
  const field = byId(id);
  const told = el("p", { class: "error", id: `${id}-wrong` }, message);
  document.getElementById(told.id)?.remove();
  (field.closest(".field") ?? field).append(told);
  field.setAttribute("aria-invalid", "true");
  const described = (field.getAttribute("aria-describedby") ?? "")
    .split(" ")
    .filter((one) => one && one !== told.id);
  field.setAttribute("aria-describedby", [...described, told.id].join(" "));
  for (
    let outer = field.closest("details");
    outer !== null;
    outer = outer.parentElement?.closest("details") ?? null
  )
    outer.open = true;
}

/**
 * Take back all that was said within an element.
 *
 * @param {Element} within
 */
export function clear(within) {
  for (const told of within.querySelectorAll("p.error[id$='-wrong']")) {
    const field = document.getElementById(told.id.slice(0, -"-wrong".length));
    field?.removeAttribute("aria-invalid");
    const described = (field?.getAttribute("aria-describedby") ?? "")
      .split(" ")
      .filter((one) => one && one !== told.id);
    if (described.length > 0) field?.setAttribute("aria-describedby", described.join(" "));
    else field?.removeAttribute("aria-describedby");
    told.remove();
  }
}

/**
 * Lead to the first field that is wrong.
 *
 * @param {Element} within
 */
export function goToWrong(within) {
  /** @type {HTMLElement | null} */
  const wrong = within.querySelector("[aria-invalid=true]");
  wrong?.focus();
}

/**
 * A key for a request; the same while what it asks stays the same, so that it is done once.
 *
 * @returns {(content: unknown) => string}
 */
export function keyring() {
  let asked = "";
  let key = "";
  return (content) => {
    const now = JSON.stringify(content);
    if (now !== asked) {
      asked = now;
      key = [...crypto.getRandomValues(new Uint8Array(16))]
        .map((byte) => byte.toString(16).padStart(2, "0"))
        .join("");
    }
    return key;
  };
}
