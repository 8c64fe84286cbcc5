// The hosts of the fleet, read once and then kept up to date from the feed of changes.

import { follow, get, pages, Problem } from "/assets/api.js";
import { count } from "/assets/dom.js";

const POLL_MS = 15_000;
const AGAIN_MS = [1000, 2000, 5000, 15_000];
const REREAD_MS = 300;
/** How often a host is read that is not found, or is behind the feed. */
const TRIES = 5;
/** More hosts than this to read again are read with all others. */
const MOST_REREAD = 200;
const AMOUNTS = ["capacity", "claimed", "external"];
/** Changes whose fields do not tell all that a page shows. */
const REREAD = new Set(["attest", "lost", "restored", "repaired"]);

/** Events: `change` (hosts or state). `state`: loading, live, polling or failed; `detail`: why, or how far. */
export class Fleet extends EventTarget {
  hosts = new Map();
  state = "loading";
  detail = "";
  #waiting = [];
  #stale = new Map();
  #timer = 0;
  #isRead = false;
  #reload = () => {};
  #abort = new AbortController();

  /** Keep the hosts up to date until `stop`. */
  async run() {
    for (let failures = 0; !this.#isStopped; failures += 1) {
      try {
        await this.#follow(() => (failures = 0));
        this.#show("polling", "the feed has ended");
      } catch (error) {
        if (this.#isStopped) return;
        await this.#poll(error);
      }
      await sleep(AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)]);
    }
  }

  stop() {
    clearTimeout(this.#timer);
    this.#abort.abort();
  }

  get #isStopped() {
    return this.#abort.signal.aborted;
  }

  /** Read all hosts once the feed is open, and again after a gap, so that no change is missed between the two. */
  async #follow(isLive) {
    const abort = new AbortController();
    let failure = null;
    let round = 0;
    this.#reload = async () => {
      const own = (round += 1);
      this.#isRead = false;
      this.#waiting = [];
      try {
        const found = await this.#readAll();
        if (own !== round) return;
        this.#replace(found);
        isLive();
        this.#show("live", "");
      } catch (error) {
        failure = error;
        abort.abort();
      }
    };
    const take = (kind, data) => {
      if (kind === "reset") this.#reload();
      else if (data.kind !== "host") return;
      else if (this.#isRead) this.#apply(data);
      else this.#waiting.push(data);
    };
    try {
      await follow(this.#reload, take, AbortSignal.any([abort.signal, this.#abort.signal]));
    } catch (error) {
      throw failure ?? error;
    }
  }

  /** Without the feed: read all hosts, and wait. */
  async #poll(error) {
    this.#show("failed", error.message);
    try {
      this.#replace(await this.#readAll());
      this.#show("polling", error.message);
      await sleep(POLL_MS);
    } catch (again) {
      this.#show("failed", again.message);
    }
  }

  async #readAll() {
    const found = new Map();
    for await (const page of pages("/v1/hosts", "hosts")) {
      for (const host of page) found.set(host.name, compact(host));
      if (!this.hosts.size) this.#show("loading", `${count(found.size, "host")} so far`);
    }
    return found;
  }

  #replace(hosts) {
    this.hosts = hosts;
    this.#stale.clear();
    this.#isRead = true;
    for (const change of this.#waiting.splice(0)) this.#apply(change);
  }

  #apply({ name, version, op, fields }) {
    const host = this.hosts.get(name);
    if (host && version <= host.version) return;
    if (op === "removed") this.#reread(name, 0, TRIES);
    else if (!host || version > host.version + 1 || fields.reread || REREAD.has(op)) this.#reread(name, version, 0);
    else change(host, version, fields);
    this.#show(this.state, this.detail);
  }

  /** Read a host until it has this version: another worker of the API may answer, which is behind this feed. */
  #reread(name, version, tries) {
    this.#stale.set(name, { version, tries });
    this.#timer ||= setTimeout(() => this.#rereadAll(), REREAD_MS);
  }

  async #rereadAll() {
    const wanted = [...this.#stale];
    this.#stale.clear();
    try {
      if (wanted.length > MOST_REREAD) await this.#reload();
      else for (const [name, { version, tries }] of wanted) await this.#readOne(name, version, tries + 1);
      this.#show(this.state, this.detail);
    } catch (error) {
      this.#show("failed", error.message);
      this.#reload();
    }
    this.#timer = this.#stale.size && !this.#isStopped ? setTimeout(() => this.#rereadAll(), REREAD_MS) : 0;
  }

  async #readOne(name, version, tries) {
    let host = null;
    try {
      host = compact(await get(`/v1/hosts/${encodeURIComponent(name)}`));
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 404) throw error;
    }
    const isBehind = host === null || host.version < Math.max(version, this.hosts.get(name)?.version ?? 0);
    if (isBehind && tries < TRIES) this.#stale.set(name, { version, tries });
    else if (host) this.hosts.set(name, host);
    else this.hosts.delete(name);
  }

  #show(state, detail) {
    this.state = state;
    this.detail = detail;
    this.dispatchEvent(new Event("change"));
  }
}

/** Return what the map needs of a host: 10,000 of them are kept. */
function compact(host) {
  const { name, cell, zone, status, alive, attested, version, claims, reservation } = host;
  const slots = {};
  for (const [slot, amounts] of Object.entries(host.slots)) {
    slots[slot] = Object.fromEntries(AMOUNTS.map((amount) => [amount, amounts[amount]]));
  }
  return { name, cell, zone, status, alive, attested, version, claims, reservation, slots, lost: host.written_off };
}

function change(host, version, fields) {
  host.version = version;
  for (const [name, value] of Object.entries(fields)) {
    const [first, slot] = name.split(/\.(.*)/s, 2);
    if (slot && AMOUNTS.includes(first)) {
      host.slots[slot] ??= Object.fromEntries(AMOUNTS.map((amount) => [amount, 0]));
      host.slots[slot][first] = Number(value);
      if (first === "capacity" && value === "") delete host.slots[slot];
    } else if (name === "alive") host.alive = value === "1";
    else if (name === "claims") host.claims = Number(value);
    else if (["status", "zone", "reservation"].includes(name)) host[name] = value;
  }
}

/** Return the class of a slot: `CUSTOM_GPU_MILLI` of `gpu0/CUSTOM_GPU_MILLI`. */
export function classOf(slot) {
  return slot.slice(slot.lastIndexOf("/") + 1);
}

/** Return the amounts of a class of a host, over all its slots; null if it has none. */
export function amountsOf(host, resource) {
  let sum = null;
  for (const [slot, { capacity, claimed, external }] of Object.entries(host.slots)) {
    if (classOf(slot) !== resource) continue;
    sum ??= { capacity: 0, claimed: 0, external: 0 };
    sum.capacity += capacity;
    sum.claimed += claimed;
    sum.external += external;
  }
  return sum;
}

/** Return the used part of a class, or of the fullest class (`""`); null without capacity. */
export function usedPart(host, resource) {
  if (resource !== "") {
    const found = amountsOf(host, resource);
    return found && found.capacity > 0 ? (found.claimed + found.external) / found.capacity : null;
  }
  const parts = classes([host]).map((one) => usedPart(host, one)).filter((part) => part !== null);
  return parts.length ? Math.max(...parts) : null;
}

export function classes(hosts) {
  const found = new Set();
  for (const host of hosts) for (const slot in host.slots) found.add(classOf(slot));
  return [...found].sort();
}

/** Return why a host takes no claims: texts, none if it takes them. Also for a host as the API returns it. */
export function obstacles(host) {
  const found = [];
  if (host.lost ?? host.written_off) found.push("an operator has written it off, and it has not returned");
  else if (!host.alive) found.push("its lease has expired: its agent sends no heartbeats");
  else if (!host.attested) found.push("it has not attested to the store's present epoch");
  if (host.status !== "enabled") found.push(`an operator has set it to ${host.status}`);
  return found;
}

/** Return a host in one word, as `condition` of the API: the map follows the feed, which has only what it follows from. */
export function condition(host) {
  if (host.lost) return "lost";
  if (!host.alive) return "down";
  if (!host.attested) return "unattested";
  return host.status === "enabled" ? "up" : host.status;
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
