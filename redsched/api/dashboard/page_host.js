// A host: why it takes no claims, its pools with what sits in them, its claims and their history.

import { get, path } from "/assets/api.js";
import { classOf, obstacles } from "/assets/fleet.js";
import { amounts, claimLink, count, facts, h, number, refresh, stateOnHost, table, time } from "/assets/dom.js";
import { eventTable } from "/assets/events.js";
import { load } from "/assets/load.js";

const MOST_SEGMENTS = 60;

/** Show the page of host `name` in `main`; return what ends it. */
export function hostPage(main, { session, show }, name) {
  main.replaceChildren(h("h1", {}, `Host ${name}`));
  return load(show, () => read(name, session), (parts) => refresh(main, ...parts), { isRepeated: true });
}

async function read(name, session) {
  const mayReadEvents = session.role !== "agent";
  const [host, { claims, next }, events] = await Promise.all([
    get(`/v1/hosts/${encodeURIComponent(name)}`),
    get("/v1/claims", { host: name, limit: 200 }),
    mayReadEvents ? get("/v1/events", { host: name, newest: "true", limit: 30 }) : null,
  ]);
  return [
    h("h1", {}, `Host ${name}`),
    verdict(host),
    facts([
      ["State", stateOf(host)], ["Zone", host.zone], ["Cell", host.cell], ["Claims", number(host.claims)],
      ["Reserved for", reservedFor(host)], ["Reserved until", time(host.reservation_until_ms)],
      ["Kept", amounts(host.kept)],
      ["Reason", host.status_reason], ["How claims leave", host.draining], ["Drain until", time(host.drain_deadline_ms)],
      ["Aggregates", host.aggregates.join(", ")], ["Labels", pairs(host.labels)], ["Metrics", pairs(host.metrics)],
    ]),
    h("h2", {}, "Pools"), ...pools(host, claims),
    ...leaving(host),
    h("h2", {}, "Claims"), claimTable(name, claims, next),
    ...(events ? [h("h2", {}, "History"), eventTable(events.events)] : []),
    h("details", {}, h("summary", {}, count(host.traits.length, "trait")), h("p", {}, host.traits.join(" "))),
    session.mayExplain && h("p", {},
      h("a", { href: path("#/request", { host: name }) }, "Check a request against this host")),
  ].filter(Boolean);
}

/** Return the request for which a host is reserved, as far as the caller may know it. */
function reservedFor({ reservation, reservation_request: request, reservation_project: project }) {
  if (!reservation) return "";
  return request ? `request ${request}${project ? ` of project ${project}` : ""}` : "another request";
}

function verdict(host) {
  const found = obstacles(host);
  if (!found.length) return h("p", { class: "good" }, "It takes claims.");
  const reasons = found.map((why) => h("li", {}, why));
  return h("div", { class: "bad" }, h("p", {}, "It takes no claims:"), h("ul", {}, reasons));
}

/** Return the tree of pools: the host itself first, each with the bars of its slots. */
function pools(host, claims) {
  const slots = Map.groupBy(Object.entries(host.slots), ([slot]) => poolOf(slot));
  const children = Map.groupBy(Object.entries(host.pools), ([, pool]) => pool.parent);
  const own = h("section", { class: "pool" }, h("h3", {}, host.name), bars(slots.get(""), host.name, claims));
  const nested = (parent) => (children.get(parent) ?? []).map(([name, pool]) =>
    h("section", { class: "pool" }, h("h3", {}, name),
      pool.traits.length ? h("p", { class: "faint" }, pool.traits.join(" ")) : null,
      pool.device ? h("p", { class: "faint" }, `device ${pool.device}`) : null,
      bars(slots.get(name), host.name, claims), nested(name)));
  return [own, ...nested("")];
}

function poolOf(slot) {
  return slot.includes("/") ? slot.slice(0, slot.lastIndexOf("/")) : "";
}

function bars(slots = [], host, claims) {
  return slots.map(([slot, { capacity, claimed, external, free, kept = 0 }]) => {
    const used = `${number(claimed)} claimed, ${number(external)} external${kept ? `, ${number(kept)} kept` : ""}`;
    const text = `${classOf(slot)}: ${used}, ${number(free)} free of ${number(capacity)}`;
    const whole = Math.max(capacity, claimed + external, 1);
    return h("div", { class: "slot" }, h("span", { class: "slot-text" }, text),
      h("div", { class: "meter", role: "img", "aria-label": text },
        segments(slot, host, claims, claimed, whole), segment("external", external / whole, `external: ${external}`)));
  });
}

/** Return a part of the bar for each claim in the slot, and one for the claims that are too many to draw. */
function segments(slot, host, claims, claimed, whole) {
  const held = claims.flatMap((claim) => claim.placements
    .filter((placement) => placement.host === host && placement.slots[slot])
    .map((placement) => [claim.claim_id, placement.slots[slot]])).slice(0, MOST_SEGMENTS);
  const rest = claimed - held.reduce((sum, [, amount]) => sum + amount, 0);
  return [
    ...held.map(([id, amount]) => segment("claim", amount / whole, `${id}: ${amount}`)),
    rest > 0 ? segment("claim", rest / whole, `others: ${rest}`) : null,
  ];
}

function segment(kind, part, title) {
  const element = h("span", { class: kind, title });
  element.style.width = `${Math.max(0, part * 100)}%`;
  return element;
}

function leaving(host) {
  const rows = [
    ...host.unmovable.map((one) => [claimLink(one.claim_id), one.reason]),
    ...host.failed_moves.map((one) => [claimLink(one.claim_id), `${one.count} moves failed: ${one.reason}`]),
  ];
  if (!rows.length) return [];
  return [h("h2", {}, "What keeps it from emptying"), table("Claims that do not leave", ["Claim", "Why"], rows)];
}

function claimTable(name, claims, next) {
  const rows = claims.map((claim) => {
    const here = claim.placements.find((placement) => placement.host === name) ?? claim;
    return [claimLink(claim.claim_id), stateOnHost(here.state, claim), claim.project, claim.consumer, amounts(here.slots),
      time(claim.claimed_at_ms)];
  });
  const caption = next ? `The first ${claims.length} claims` : count(claims.length, "claim");
  return table(caption, ["Claim", "State", "Project", "Consumer", "Amounts", "Claimed"], rows);
}

function pairs(values) {
  return Object.entries(values).map(([key, value]) => `${key}=${value}`).join(", ");
}

/** Return the state of a host in words, and since when it is down. */
function stateOf({ condition, status, down_since_ms }) {
  const words = { unattested: "up, but not attested", lost: "written off", draining: "up, draining", disabled: "up, disabled" };
  if (condition !== "down") return words[condition] ?? condition;
  return `down since ${time(down_since_ms)}${status === "enabled" ? "" : `, ${status}`}`;
}
