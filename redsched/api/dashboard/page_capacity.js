// The capacity: amounts by class and by zone, aggregate, project or consumer, and how many more of a request fit.

import { call, get } from "/assets/api.js";
import { claimLink, count, field, h, hostLink, number, percent, stacked, table } from "/assets/dom.js";
import { load } from "/assets/load.js";
import { freeTable, planned } from "/assets/plan.js";
import { parsedAmounts } from "/assets/amounts.js";

const BY = ["", "zone", "aggregate", "project", "consumer"];

/** Show the page in `main`. */
export function capacityPage(main, { show }, _, query) {
  const by = h("select", { name: "by" }, BY.map((one) => h("option", { value: one }, one || "nothing else")));
  by.value = BY.includes(query.get("by")) ? query.get("by") : "";
  by.addEventListener("change", () => (location.hash = by.value ? `#/capacity?by=${by.value}` : "#/capacity"));
  const amounts = h("div");
  main.replaceChildren(h("h1", {}, "Capacity"), h("div", { class: "bar" }, field("By class and", by)), amounts,
    ...roomParts(show));
  return load(show, () => get("/v1/capacity", { by: by.value }), (found) => amounts.replaceChildren(amountsTable(found)));
}

function amountsTable({ by, capacity }) {
  const isOfClaims = by === "project" || by === "consumer";
  const rows = capacity.flatMap(({ name, classes }) => Object.entries(classes).map(([resource, one]) => [
    ...(by ? [name || "none"] : []), resource, stacked(one.claimed / one.total, one.external / one.total),
    one.total ? percent((one.claimed + one.external) / one.total) : "", number(one.claimed),
    ...(isOfClaims ? [] : [number(one.external), number(one.kept), number(one.free), number(one.away)]), number(one.total),
    ...(isOfClaims ? [] : [number(one.largest), largestAt(one.largest_at)]),
  ]));
  const first = by ? [by[0].toUpperCase() + by.slice(1)] : [];
  const headings = isOfClaims ? [...first, "Class", "", "Used", "Claimed", "Total"]
    : [...first, "Class", "", "Used", "Claimed", "External", "Kept", "Free", "Away", "Total", "Largest", "At"];
  const numeric = headings.map((_, column) => column).slice(first.length + 2, isOfClaims ? undefined : -1);
  const about = isOfClaims ? "The total is that of all hosts."
    : "Kept is free, but for requests that wait. Away is free on hosts that take no claims. Largest is the most that one request can get in one place.";
  const shown = table(`Amounts by ${by ? `${by} and ` : ""}class`, headings, rows, { numeric, empty: "no hosts" });
  return h("div", {}, shown, h("p", { class: "faint" }, about));
}

function largestAt(text) {
  const [host, ...pool] = text.split(" ");
  return host ? h("span", {}, hostLink(host), pool.length ? ` ${pool.join(" ")}` : "") : "";
}

/** Return the form that asks how many more of a request fit, with the place for its answer. */
function roomParts(show) {
  const resources = h("input", { name: "room", class: "long", value: "VCPU=2 MEMORY_MB=4096", spellcheck: "false" });
  const without = h("select", { name: "n-plus-one" },
    [["", "do not check"], ["host", "any one host"], ["zone", "any one zone"]].map(([value, text]) => h("option", { value }, text)));
  const answer = h("div", { id: "room", role: "status" });
  const ask = async () => {
    const request = { resources: parsedAmounts(resources.value) };
    const body = without.value ? { request, n_plus_one: without.value } : { request };
    return room(await call("POST", "/v1/plans/capacity", body));
  };
  return [
    h("h2", {}, "How many more fit"),
    h("form", { class: "bar", submit: planned(answer, show, ask) }, field("One place, CLASS=AMOUNT", resources),
      field("And everything fits without", without), h("button", { class: "main" }, "Plan")),
    answer,
  ];
}

function room(found) {
  const zones = Object.entries(found.zones).map(([zone, places]) => [zone || "no zone", number(places)]);
  const reasons = found.reasons.map((one) => [one.reason, number(one.hosts)]);
  return [
    h("p", { class: "verdict" }, `${found.at_least ? "At least " : ""}${count(found.places, "more place")}`),
    table("By zone", ["Zone", "Places"], zones, { numeric: [1] }),
    table("Why hosts take no more after these", ["Reason", "Hosts"], reasons, { numeric: [1] }),
    freeTable(found.classes, "After these"),
    ...(found.redundancy ? redundancy(found.redundancy) : []),
  ];
}

function redundancy({ by, checked, failed, failing }) {
  const verdict = failed ? `Without ${count(failed, by)} of ${number(checked)}, some claims have no other place`
    : `All claims have a place without any one of ${count(checked, by)}`;
  const rows = failing.map((one) => [one.domain, number(one.claims), number(one.unplaced),
    h("span", {}, one.examples.flatMap(({ claim_id: id, reason }) => [claimLink(id), `: ${reason}\n`]))]);
  const headings = [by[0].toUpperCase() + by.slice(1), "Claims", "Without a place", "Such as"];
  return [h("p", { class: failed ? "bad" : "good" }, verdict),
    rows.length ? table("The worst first", headings, rows, { numeric: [1, 2] }) : ""];
}
