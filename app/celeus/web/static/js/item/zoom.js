/* A picture as large as the window, and larger, by keys too. */

import { button, el } from "../dom.js";

const STEP = 1.5;
const MOST = 12;
/** A picture is shown at twice its size at first, and only one of a few dots still larger. */
const FIRST = 2;

/**
 * Open a dialog with a picture that is shown in `frame`.
 *
 * @param {HTMLElement} frame
 * @param {HTMLImageElement} picture
 */
export function zoom(frame, picture) {
  const { alt, naturalWidth: width, naturalHeight: height } = picture;
  if (!width || !height) return;
  const tiny = picture.classList.contains("tiny");
  const image = el("img", {
    alt,
    class: tiny ? "tiny" : null,
    referrerpolicy: "no-referrer",
    src: picture.src,
  });
  const room = el("div", { class: "zoom-room", tabindex: "0", role: "group" }, image);
  room.setAttribute("aria-label", "The picture, moved by the arrow keys");
  let scale = 1;
  const draw = () => {
    const fit = Math.min(room.clientWidth / width, room.clientHeight / height);
    image.style.width = `${Math.round(width * scale * (tiny ? fit : Math.min(fit, FIRST)))}px`;
  };
  const to = (/** @type {number} */ wanted) => {
    const [x, y] = [room.scrollLeft + room.clientWidth / 2, room.scrollTop + room.clientHeight / 2];
    const before = scale;
    scale = Math.min(MOST, Math.max(1, wanted));
    draw();
    const grown = scale / before;
    room.scrollTo(x * grown - room.clientWidth / 2, y * grown - room.clientHeight / 2);
  };
  const dialog = el(
    "dialog",
    { class: "zoom", "aria-label": alt },
    el(
      "div",
      { class: "zoom-bar" },
      el("span", { class: "zoom-name", dir: "auto" }, alt),
      button(["− ", el("kbd", {}, "-")], () => to(scale / STEP), { "aria-label": "Smaller" }),
      button(["+ ", el("kbd", {}, "+")], () => to(scale * STEP), { "aria-label": "Larger" }),
      button(["Close ", el("kbd", {}, "Esc")], () => dialog.close(), { "aria-label": "Close" }),
    ),
    room,
  );
  dialog.addEventListener("keydown", ({ key, ctrlKey, metaKey }) => {
    if (ctrlKey || metaKey) return;
    if (key === "+" || key === "=") to(scale * STEP);
    else if (key === "-") to(scale / STEP);
    else if (key === "0") to(1);
  });
  const observer = new ResizeObserver(draw);
  dialog.addEventListener("close", () => {
    observer.disconnect();
    dialog.remove();
  });
  frame.append(dialog);
  dialog.showModal();
  observer.observe(room);
  draw();
  room.focus();
}
