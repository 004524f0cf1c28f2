/* The buttons of a session: what can be done now, what cannot, and why.

   What most people come for stands beside the answer (`#lead`), the most useful of it in colour;
   what changes the session, and other ways on, in the card of actions. */

import { api, messageOf, Problem } from "../api.js";
import { askDelete } from "../deletion.js";
import { announce, byId, el, fill, only } from "../dom.js";
import { counted, nameOf, number } from "../format.js";

const CERTIFICATE_MS = 120_000;

/** The buttons; `changed` is given the session after a change. */
export class Actions {
  #session;
  #mayManage;
  #mayLabel;
  #mayDelete;
  #changed;
  #buttons;
  #failure = el("p", { class: "notice danger", role: "alert", hidden: true });

  /**
   * @param {AnySession} session
   * @param {string[]} scopes
   * @param {(session: AnySession) => void} changed
   */
  constructor(session, scopes, changed) {
    this.#session = session;
    this.#mayManage = scopes.includes("manage");
    this.#mayLabel = scopes.includes("label");
    this.#mayDelete = scopes.includes("admin");
    this.#changed = changed;
    this.#buttons = this.#make();
    this.#listen();
    this.show(session);
  }

  /**
   * Fit the buttons to where the session stands.
   *
   * @param {AnySession} session
   */
  show(session) {
    this.#session = session;
    const closed = session.state === "closed";
    const { pause, precision, close, label, certificate, report, archive } = this.#buttons;
    archive.textContent = session.archived ? "Restore from the archive" : "Archive";
    archive.disabled = !this.#mayManage;
    this.#buttons.destroy.hidden = !this.#mayDelete || !session.archived;
    pause.textContent = session.state === "paused" ? "Resume" : "Pause";
    for (const button of [pause, precision, close]) button.disabled = !this.#mayManage || closed;
    precision.hidden = session.fixed || session.best !== null || Boolean(session.table);
    label.hidden = !this.#mayLabel || closed || session.stopped || Boolean(session.archived);
    for (const one of [certificate, report])
      one.classList.toggle("primary", closed || session.stopped);
    byId("actions-why").textContent = this.#why(closed);
  }

  #make() {
    /** @type {(word: string, work: () => void, kind?: string) => HTMLButtonElement} */
    const button = (word, work, kind = "") =>
      el(
        "button",
        {
          type: "button",
          class: `button ${kind}`,
          "aria-describedby": "actions-why",
          on: { click: work },
        },
        word,
      );
    const id = this.#session.id;
    return {
      label: el("a", { class: "button primary", href: `/label/${id}` }, "Label by hand"),
      pause: button("Pause", () => this.#pause()),
      precision: button("New precision…", () => this.#askPrecision()),
      certificate: button("Download the certificate", () => this.#certificate()),
      report: el(
        "a",
        { class: "button", href: `/v1/sessions/${id}/report`, target: "_blank", rel: "noopener" },
        "Open the report",
      ),
      close: button("Close for good…", () => this.#askClose(), "danger"),
      archive: button("Archive", () => this.#archive()),
      destroy: button("Delete for good…", () => this.#destroy(), "danger"),
    };
  }

  #listen() {
    const { label, pause, precision, certificate, report, close, archive, destroy } = this.#buttons;
    byId("lead").append(label, report, certificate, this.#failure);
    byId("actions").append(
      el("div", { class: "actions" }, pause, precision, archive, close, destroy),
      el("p", { class: "quiet-text", id: "actions-why" }),
    );
    only(byId("precision-dialog"), "form").addEventListener("submit", (event) =>
      this.#setPrecision(event),
    );
    only(byId("close-dialog"), "form").addEventListener("submit", (event) => this.#close(event));
  }

  /** @param {boolean} closed */
  #why(closed) {
    if (this.#session.archived)
      return "The session is archived: lists leave it out, and it takes no draws and no labels.";
    if (closed) return "The session is closed for good: it accepts no more labels or changes.";
    if (!this.#mayManage)
      return "Your key can only view. Pausing, changing or closing needs a key with the scope “manage”.";
    return this.#session.fixed ? "Precision, budget and stop were fixed at opening." : "";
  }

  async #pause() {
    const state = this.#session.state === "paused" ? "active" : "paused";
    const { pause } = this.#buttons;
    pause.disabled = true;
    try {
      await this.#change({ state });
      announce(state === "paused" ? "The session is paused." : "The session has resumed.");
    } catch (problem) {
      this.#fail(problem);
    }
    pause.disabled = false;
    pause.focus();
  }

  async #archive() {
    const { archive } = this.#buttons;
    const archived = !this.#session.archived;
    archive.disabled = true;
    try {
      await this.#change({ archived });
      announce(archived ? "The session is archived." : "The session is back in the lists.");
    } catch (problem) {
      this.#fail(problem);
    }
    archive.disabled = false;
    archive.focus();
  }

  #destroy() {
    const { id, name, rounds } = this.#session;
    askDelete({
      path: `/v1/sessions/${id}`,
      title: "Delete this session for good?",
      words: `Its ${counted(rounds.judged, "label")}, comments, links and certificates go. What stays is that it existed, with digests: later certificates on its pool count it.`,
      name: name ?? id,
      done: () => location.assign("/"),
    });
  }

  #askPrecision() {
    const { precision, width } = this.#session;
    const input = byId("precision", HTMLInputElement);
    input.value = String(precision ?? "");
    byId("precision-help").textContent =
      `Currently ${precision === null ? "none" : precision}; the interval is ${number(width ?? 0, width ?? 0)} wide. Leave empty for none.`;
    this.#invalid("");
    byId("precision-dialog", HTMLDialogElement).showModal();
    input.select();
  }

  /** @param {SubmitEvent} event */
  async #setPrecision(event) {
    // Enter in the field is the button that comes first; Escape closes the dialog by itself
    if (event.submitter?.getAttribute("value") === "cancel") return;
    event.preventDefault();
    const given = byId("precision", HTMLInputElement).value.trim().replace(",", ".");
    const precision = given === "" ? null : Number(given);
    if (precision !== null && !(precision > 0)) {
      this.#invalid("A width is a number above 0, such as 0.05.");
      return;
    }
    try {
      await this.#change({ precision });
      byId("precision-dialog", HTMLDialogElement).close();
      announce(
        precision === null
          ? "The session no longer has a precision."
          : `The precision is now ${precision}.`,
      );
    } catch (problem) {
      const rule = problem instanceof Problem ? problem.rule : null;
      this.#invalid(rule === null ? messageOf(problem) : `${messageOf(problem)} (${rule})`);
    }
  }

  /** @param {string} why */
  #invalid(why) {
    byId("precision-error").textContent = why;
    byId("precision").toggleAttribute("aria-invalid", why !== "");
    if (why !== "") byId("precision").focus();
  }

  #askClose() {
    const { pending, waiting } = this.#session.rounds;
    const refused =
      pending > 0
        ? `${counted(pending, "draw")} still out with judges: a label for ${pending === 1 ? "it" : "them"} would be refused. `
        : "";
    const lost =
      waiting > 0
        ? `${counted(waiting, "label")} ${waiting === 1 ? "waits" : "wait"} for an earlier one, and would never enter the interval.`
        : "";
    byId("close-pending").textContent = refused + lost;
    byId("close-error").textContent = "";
    byId("close-dialog", HTMLDialogElement).showModal();
  }

  /** @param {SubmitEvent} event */
  async #close(event) {
    const { submitter } = event;
    if (!(submitter instanceof HTMLButtonElement) || submitter.value !== "close") return;
    event.preventDefault();
    submitter.disabled = true;
    try {
      await this.#change({ state: "closed" });
      byId("close-dialog", HTMLDialogElement).close();
      announce("The session is closed.");
      this.#buttons.certificate.focus();
    } catch (problem) {
      byId("close-error").textContent = messageOf(problem);
    }
    submitter.disabled = false;
  }

  async #certificate() {
    const { certificate } = this.#buttons;
    certificate.setAttribute("aria-busy", "true");
    try {
      const answer = await api("GET", `/v1/sessions/${this.#session.id}/certificate`, undefined, {
        raw: true,
        wait: CERTIFICATE_MS,
      });
      const link = el("a", {
        href: URL.createObjectURL(await answer.blob()),
        download: `${this.#session.id}.certificate.json`,
      });
      link.click();
      // Browsers may begin to read it a moment later
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      this.#fail(null);
      announce(`The certificate of ${nameOf(this.#session)} has been downloaded.`);
    } catch (problem) {
      this.#fail(problem);
    }
    certificate.removeAttribute("aria-busy");
  }

  /** @param {SessionChange} settings */
  async #change(settings) {
    const session = await api("PATCH", `/v1/sessions/${this.#session.id}`, settings, { retry: 2 });
    this.#fail(null);
    this.#changed(session);
  }

  /** @param {unknown} error */
  #fail(error) {
    this.#failure.hidden = error === null;
    fill(this.#failure, error === null ? "" : messageOf(error));
  }
}
