// Claims: a list with filters, a page at a time, and the page of one claim.

import { get, pages, Problem } from "/assets/api.js";
import { amounts, claimLink, count, facts, field, h, hostLink, meter, number, ranking, stateOnHost, table, time } from "/assets/dom.js";
import { eventTable } from "/assets/events.js";
import { load } from "/assets/load.js";

const STATES = ["pending", "claimed", "starting", "active", "ending", "shelved"];
/** The value of the state filter for claims with a running lease, that is in these states, the first to end first. */
const EXPIRING = "expiring";
const LEASED = ["claimed", "starting"];
const FILTERS = ["project", "owner", "consumer", "host", "zone"];
const PAGE = 100;

/** Show the list in `main`. The filters are in the address, so that it can be kept. */
export function claimsPage(main, { show }, _, query) {
  const inputs = Object.fromEntries(FILTERS.map((name) => [name, h("input", { value: query.get(name) ?? "", name })]));
  const any = h("option", { value: "" }, "any");
  const state = h("select", { name: "state" }, any, STATES.map((one) => h("option", {}, one)),
    h("option", { value: EXPIRING }, "about to expire"));
  state.value = query.get("state") ?? "";
  const id = h("input", { name: "id" });
  const list = h("div");
  const found = h("p", { role: "status", class: "faint" });
  const search = (event) => {
    event.preventDefault();
    const wanted = new URLSearchParams();
    for (const [name, { value }] of Object.entries({ ...inputs, state })) {
      if (value.trim()) wanted.set(name, value.trim());
    }
    location.hash = id.value.trim() ? `#/claim/${encodeURIComponent(id.value.trim())}` : `#/claims?${wanted}`;
  };
  main.replaceChildren(
    h("h1", {}, "Claims"),
    h("form", { class: "bar", submit: search },
      field("Claim id", id), FILTERS.map((name) => field(capital(name), inputs[name])), field("State", state),
      h("button", { class: "main" }, "Search")),
    found, list,
  );
  const filters = Object.fromEntries([...FILTERS, "state"].map((name) => [name, query.get(name)]));
  const read = filters.state === EXPIRING ? () => expiring(filters) : (after) => get("/v1/claims", { ...filters, limit: PAGE, after });
  const draw = (page) => {
    found.textContent = `${count(page.claims.length, "claim")}${page.next ? ", and more" : ""}`;
    const next = h("button", { type: "button", click: () => turnTo(page.next) }, "Next page");
    list.replaceChildren(claimTable(page.claims), page.next ? next : "");
  };
  let end = () => {};
  const turnTo = (after) => {
    end();
    found.textContent = "Reading";
    end = load(show, () => read(after), draw, { clear: () => found.replaceChildren() });
  };
  turnTo("");
  return () => end();
}

/** Return the claims with a running lease as one page, the first to end first. */
async function expiring(filters) {
  const claims = [];
  for await (const page of pages("/v1/claims", "claims", { ...filters, state: LEASED })) claims.push(...page);
  claims.sort((one, other) => one.expires_at_ms - other.expires_at_ms);
  return { claims };
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}

function claimTable(claims) {
  const rows = claims.map((claim) => [claimLink(claim.claim_id), stateOnHost(claim.state, claim), hostLink(claim.host), claim.project,
    claim.owner, claim.consumer, amounts(claim.slots), time(claim.claimed_at_ms), time(claim.expires_at_ms)]);
  const headings = ["Claim", "State", "Host", "Project", "Owner", "Consumer", "Amounts", "Claimed", "Lease until"];
  return table("Claims", headings, rows, { empty: "no claim matches" });
}

/** Show the page of claim `id` in `main`. */
export function claimPage(main, { session, show }, id) {
  const content = h("div", {}, h("p", {}, "Reading."));
  main.replaceChildren(h("h1", {}, `Claim ${id}`), content);
  return load(show, () => read(id, session), (parts) => content.replaceChildren(...parts), { clear: () => content.replaceChildren() });
}

async function read(id, session) {
  const url = `/v1/claims/${encodeURIComponent(id)}`;
  const [claim, events] = await Promise.all([get(url), session.role === "agent" ? null : history(url)]);
  const placements = claim.placements.map((one) => [hostLink(one.host), one.state, amounts(one.slots),
    one.end_reason ?? "", time(one.expires_at_ms), time(one.move_deadline_ms)]);
  return [
    facts([
      ["State", stateOnHost(claim.state, claim)], ["Host", hostLink(claim.host)], ["Amounts", amounts(claim.slots)],
      ["Resizing to", amounts(claim.resizing_to)], ["Project", claim.project], ["Owner", claim.owner],
      ["Consumer", claim.consumer], ["Server group", claim.server_group], ["Made by", claim.actor], ["Request", claim.request_id],
      ["No other place", claim.unmovable ?? ""], ["Released or shelved by", claim.closed_by ?? ""],
      ["Claimed", time(claim.claimed_at_ms)], ["Lease until", time(claim.expires_at_ms)],
      ["Stops at", time(claim.runtime_deadline_ms)], ["Attempts", `${claim.attempts} of ${claim.max_attempts}`],
      ["Next attempt", time(claim.next_attempt_at_ms)], ["End reason", claim.end_reason],
      ["Alternates", (claim.alternates ?? []).map((one) => one.host).join(", ")],
      ["Why", claim.reason && `${claim.reason.text} (${claim.reason.host}, ${time(claim.reason.at_ms)})`],
    ]),
    h("h2", {}, "Placements"),
    table("What it holds", ["Host", "State", "Amounts", "Ends because", "Lease until", "Move until"], placements),
    ...(claim.decision ? [h("h2", {}, `Why ${claim.decision.host}`), ...decision(claim.decision)] : []),
    ...(events ? [h("h2", {}, "History"), eventTable(events)] : []),
  ];
}

/** Return how the host of the newest placement was chosen: who was left out, and the scores of the best hosts. */
function decision({ hosts, fits, at_ms, candidate, policy, reasons, ranked }) {
  const left = reasons.map((one) => [one.reason, number(one.hosts), meter(one.hosts / hosts)]);
  const later = candidate > 1 ? ` Candidate ${candidate} was taken: those before it had no room any more.` : "";
  return [
    h("p", {}, `${number(fits)} of ${count(hosts, "host")} fitted at ${time(at_ms)}; weighed by ${policy}.${later}`),
    left.length ? table("Left out", ["Reason", "Hosts", ""], left, { numeric: [1] }) : "",
    ranking(ranked),
  ];
}

async function history(url) {
  try {
    return (await get(`${url}/events`, { newest: "true", limit: 50 })).events;
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return [];
    throw error;
  }
}
