/*
 * Pictures and sounds of an item: shown and played by the browser, and where that fails, told.
 *
 * A payload is often what the evaluated model wrote. Whatever loaded by itself would tell its host
 * which items were drawn, and in which order: so it loads on a click, or from a host listed.
 */

import { button, el } from "../dom.js";
import { isMembers } from "./members.js";
import { grown } from "./room.js";
import { zoom } from "./zoom.js";

const EXCERPT = 240;
const TINY = 64;
/** @import { Room } from "./room.js" */

const MEDIA = {
  image: { noun: "picture", done: "shown" },
  audio: { noun: "sound", done: "played" },
};
/** @type {Record<string, string>} */
const SOUNDS = { mp3: "mpeg", m4a: "mp4", opus: "ogg" };
/** What the controls of a sound do when they are in focus, and so no key of the page. */
const PLAYED = new Set([" ", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);
const TELLS = "Loading it tells that host which item you see.";
/** Hosts of `CELEUS_MEDIA_HOSTS`, from which pictures and sounds load without a click. */
const LISTED = new Set(
  document.querySelector('meta[name="media-hosts"]')?.getAttribute("content")?.split(" "),
);

/** @typedef {{ address: string, host: string | null }} Place with the host that a click is for */

/**
 * @param {unknown} value an address, `{src | url, alt}`, or a list of them
 * @param {string} id of the item
 * @param {Room} room
 */
export function pictures(value, id, room) {
  const one = (/** @type {unknown} */ told) => picture(sourceOf(told), altOf(told), id);
  const terms = /** @type {const} */ ({ noun: "picture", kind: "media" });
  return grown(el("div", { class: "payload-images" }), [value].flat(), room, one, terms);
}

/**
 * A picture within a text; a button for it, where there is no room.
 *
 * @param {Room} room
 * @param {string} source
 * @param {string} alt
 */
export function pictureIn(room, source, alt) {
  if (room.media > 0) {
    room.media -= 1;
    return picture(source, alt);
  }
  const terms = /** @type {const} */ ({ noun: "picture", kind: "media" });
  return grown(el("span"), [source], room, () => picture(source, alt), terms);
}

/**
 * @param {string} source
 * @param {string} alt
 * @param {string} [id]
 */
export function picture(source, alt, id) {
  const words = alt || (id === undefined ? "Picture" : `Picture of item ${id}`);
  return framed("image", source, alt, (frame) => {
    const image = el("img", { alt: words, referrerpolicy: "no-referrer", decoding: "async" });
    const enlarge = () => zoom(frame, image);
    image.addEventListener("click", enlarge);
    image.addEventListener("load", () => {
      image.classList.toggle("tiny", image.naturalWidth <= TINY);
      frame.append(button("Enlarge", enlarge, { "aria-haspopup": "dialog" }));
    });
    return image;
  });
}

/**
 * @param {unknown} value an address, `{src | url, alt}`, `{data, format}`, or a list of them
 * @param {Room} room
 */
export function sounds(value, room) {
  const terms = /** @type {const} */ ({ noun: "sound", kind: "media" });
  return grown(el("div", { class: "payload-sounds" }), [value].flat(), room, sound, terms);
}

/** @param {unknown} value */
function sound(value) {
  const alt = altOf(value);
  return framed("audio", soundOf(value), alt, (frame) => {
    const words = alt || "Sound of this item";
    const audio = el("audio", { controls: true, preload: "metadata", "aria-label": words });
    audio.addEventListener("keydown", (event) => {
      if (PLAYED.has(event.key)) event.stopPropagation();
    });
    if (alt !== "") frame.append(el("figcaption", { class: "quiet-text", dir: "auto" }, alt));
    return audio;
  });
}

/**
 * A frame with what `make` shows or plays of a source, or with why that cannot be.
 *
 * @param {keyof typeof MEDIA} kind
 * @param {string} source
 * @param {string} alt
 * @param {(frame: HTMLElement) => HTMLImageElement | HTMLAudioElement} make
 */
function framed(kind, source, alt, make) {
  const { noun, done } = MEDIA[kind];
  const place = placeOf(source, kind);
  const frame = el("figure", { class: `payload-${kind === "image" ? kind : noun}` });
  if (place === null) {
    frame.append(broken(`The address of this ${noun} is not one that can be ${done}.`, source));
    return frame;
  }
  const show = () => {
    frame.replaceChildren();
    const medium = make(frame);
    medium.addEventListener("error", () => {
      frame.replaceChildren(broken(failed(noun), place.address), button("Load again", show));
    });
    medium.src = place.address;
    frame.prepend(medium);
  };
  load(frame, place, noun, alt, show);
  return frame;
}

/**
 * What to do where something did not load: a judge may have a button for it.
 *
 * @param {string} noun
 */
function failed(noun) {
  const ways = [...document.querySelectorAll("#dock .cannot:not([hidden]) span")];
  const way = ways.length > 0 ? `, or “${ways[0].textContent}” if you need it` : "";
  return `This ${noun} did not load. Press “Load again”${way}.`;
}

/**
 * Show what is at a place: at once, or on a click where that would tell a host of it.
 *
 * @param {HTMLElement} frame
 * @param {Place} place
 * @param {string} noun
 * @param {string} alt
 * @param {() => void} show
 */
function load(frame, { host }, noun, alt, show) {
  if (host === null) {
    show();
    return;
  }
  const click = () => {
    show();
    // The button is gone, and with it where one was
    frame.tabIndex = -1;
    frame.focus();
  };
  frame.append(
    el(
      "div",
      { class: "payload-foreign" },
      alt !== "" && el("p", { dir: "auto" }, alt),
      el("p", {}, `This ${noun} is at `, el("bdi", {}, host), `. ${TELLS}`),
      button(`Load ${noun}`, click),
    ),
  );
}

/**
 * Have the pictures at hand before they are needed: those that are shown at first without a click.
 *
 * @param {unknown} value
 * @param {Room} room
 */
export function loadPictures(value, room) {
  for (const one of [value].flat().slice(0, room.media)) {
    const place = placeOf(sourceOf(one), "image");
    if (place === null || place.host !== null || place.address.startsWith("data:")) continue;
    const image = new Image();
    image.referrerPolicy = "no-referrer";
    image.src = place.address;
  }
}

/**
 * What cannot be shown: why, and where it is.
 *
 * @param {string} words
 * @param {string} address
 */
function broken(words, address) {
  const short = address.slice(0, EXCERPT);
  let where = null;
  if (/^https:\/\//i.test(address))
    where = el(
      "a",
      { href: address, target: "_blank", rel: "noopener noreferrer nofollow" },
      short,
    );
  else if (!address.startsWith("data:") && address !== "")
    where = el("span", { class: "quiet-text" }, short);
  return el("p", { class: "payload-broken" }, words, where && [" ", where]);
}

/**
 * The place that a source names; null where a page loads nothing from: what is unencrypted tells
 * everybody on the way.
 *
 * @param {string} source
 * @param {"image" | "audio"} kind
 * @returns {Place | null}
 */
function placeOf(source, kind) {
  if (source.toLowerCase().startsWith(`data:${kind}/`)) return { address: source, host: null };
  const url = URL.canParse(source) ? new URL(source) : null;
  if (url?.protocol !== "https:") return null;
  return { address: url.href, host: LISTED.has(url.hostname) ? null : url.host };
}

/** @param {unknown} value */
function sourceOf(value) {
  const source = isMembers(value) ? (value.src ?? value.url) : value;
  return typeof source === "string" ? source : "";
}

/** @param {unknown} value */
function soundOf(value) {
  if (!isMembers(value) || typeof value.data !== "string") return sourceOf(value);
  const format = String(value.format ?? "wav").toLowerCase();
  return `data:audio/${SOUNDS[format] ?? format};base64,${value.data}`;
}

/** @param {unknown} value */
export function altOf(value) {
  return isMembers(value) && typeof value.alt === "string" ? value.alt : "";
}
