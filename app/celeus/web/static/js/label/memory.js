/* What this browser keeps for the label page. One that keeps nothing forgets; all else goes on. */

/**
 * What is kept at a place; null where that is nothing, or nothing that can be read.
 *
 * @param {StorageName} storage
 * @param {string} place
 * @returns {any}
 */
export function recalled(storage, place) {
  try {
    return JSON.parse(window[storage].getItem(place) ?? "null");
  } catch {
    return null;
  }
}

/**
 * Keep a value at a place, or nothing there with null; returns whether that could be done.
 *
 * @param {StorageName} storage
 * @param {string} place
 * @param {unknown} value
 */
export function keep(storage, place, value) {
  try {
    if (value === null) window[storage].removeItem(place);
    else window[storage].setItem(place, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}
