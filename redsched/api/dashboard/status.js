// What is wrong with the fleet: read again and again, and shown above every page.

import { get } from "/assets/api.js";
import { h } from "/assets/dom.js";

const EVERY_MS = 15_000;

/** The status of the fleet. Sends `change` when it has been read, or could not be: `problem` has the reason then. */
export class Status extends EventTarget {
  report = null;
  problem = "";
  readAt = 0;
  #timer = 0;
  #stopped = false;

  /** Read it now, and from then on while the tab is visible; at once when it becomes visible. */
  start() {
    document.addEventListener("visibilitychange", this.#run);
    this.#run();
  }

  stop() {
    this.#stopped = true;
    document.removeEventListener("visibilitychange", this.#run);
    clearTimeout(this.#timer);
  }

  #run = () => {
    this.#read().finally(() => {
      clearTimeout(this.#timer);
      if (!this.#stopped) this.#timer = setTimeout(this.#run, EVERY_MS);
    });
  };

  async #read() {
    if (document.hidden) return;
    try {
      this.report = await get("/v1/status");
      this.problem = "";
      this.readAt = Date.now();
    } catch (error) {
      this.problem = error.message;
    }
    if (!this.#stopped) this.dispatchEvent(new Event("change"));
  }
}

/** Return the most serious problem in a line with a link to all of them; null if nothing is wrong. */
export function banner({ report, problem }) {
  if (problem) return h("p", {}, `The status cannot be read: ${problem}`);
  if (!report || report.healthy) return null;
  const [first, ...others] = report.problems;
  const more = others.length ? ` And ${others.length} more.` : "";
  return h("p", {}, `${sentence(first)}${more} `, h("a", { href: "#/status" }, "What to do"));
}

/** Return what is wrong as a sentence. */
export function sentence({ cell, detail }) {
  return `${cell ? `Cell ${cell}: ` : ""}${detail}.`;
}
