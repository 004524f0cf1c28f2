/* The pools that are here, to choose one of them. */

import { messageOf } from "../api.js";
import { byId } from "../dom.js";
import { swap } from "../live.js";

const TYPED_MS = 200;

/** The list of pools, as the service renders it; `choose` is called with the one somebody picks. */
export class PoolList {
  #limit = "";
  #asking = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #typing;

  /** @param {(id: string) => void} choose */
  constructor(choose) {
    byId("pool-search").addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.again(), TYPED_MS);
    });
    byId("archived-pools").addEventListener("change", () => this.again());
    byId("pool-list").addEventListener("click", (event) => {
      const { target } = event;
      const pressed = target instanceof Element ? target.closest("button") : null;
      if (pressed?.id === "more-pools") {
        this.#limit = pressed.dataset.limit ?? "";
        this.again();
      } else if (pressed?.name === "pool") {
        event.preventDefault();
        choose(pressed.value);
      }
    });
  }

  /** Ask for them anew. */
  async again() {
    const query = new URLSearchParams({ q: byId("pool-search", HTMLInputElement).value });
    if (byId("archived-pools", HTMLInputElement).checked) query.set("archived", "true");
    if (this.#limit !== "") query.set("limit", this.#limit);
    const address = `/sessions/new?${query}`;
    for (const form of document.querySelectorAll("form[data-swap]"))
      form.setAttribute("action", address);
    this.#asking.abort();
    const { signal } = (this.#asking = new AbortController());
    await swap("pool-list", address, { signal }).catch(
      (problem) => signal.aborted || tell(problem),
    );
  }
}

/** @param {unknown} problem */
function tell(problem) {
  byId("pools-told").textContent = `The pools could not be loaded: ${messageOf(problem)}`;
}
