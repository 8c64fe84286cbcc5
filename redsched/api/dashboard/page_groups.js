// Server groups: claims that are placed together or apart; and aggregates, the named sets of hosts.

import { get, pages } from "/assets/api.js";
import { load } from "/assets/load.js";
import { count, facts, h, hostLink, number, table } from "/assets/dom.js";

/** Show the lists in `main`. */
export function groupsPage(main, { show }) {
  const groups = h("div");
  const aggregates = h("div");
  main.replaceChildren(h("h1", {}, "Groups"), groups, aggregates);
  const read = () => Promise.all([all("/v1/server-groups", "server_groups"), all("/v1/aggregates", "aggregates")]);
  return load(show, read, ([ofClaims, ofHosts]) => {
    groups.replaceChildren(groupTable(ofClaims));
    aggregates.replaceChildren(aggregateTable(ofHosts));
  });
}

/** Show the page of server group `name` in `main`. */
export function groupPage(main, { show }, name) {
  const content = h("div");
  main.replaceChildren(h("h1", {}, `Server group ${name}`), content);
  const read = () => get(`/v1/server-groups/${encodeURIComponent(name)}`);
  return load(show, read, (found) => content.replaceChildren(...groupParts(found)));
}

async function all(url, name) {
  const found = [];
  for await (const page of pages(url, name)) found.push(...page);
  return found;
}

function groupTable(groups) {
  const rows = groups.map((one) => [h("a", { href: `#/group/${encodeURIComponent(one.name)}` }, one.name), one.policy,
    one.by, one.max_per_host || "", number(one.members)]);
  return table("Server groups", ["Name", "Policy", "By", "Most on a host", "Members"], rows, { numeric: [3, 4], empty: "no server groups" });
}

function aggregateTable(aggregates) {
  const rows = aggregates.map((one) => [one.name, number(one.hosts.length),
    Object.entries(one.metadata).map(([key, value]) => `${key}=${value}`).join(" ")]);
  return table("Aggregates", ["Name", "Hosts", "Metadata"], rows, { numeric: [1], empty: "no aggregates" });
}

function groupParts(found) {
  const places = Object.entries(found.counts).map(([by, counts]) => {
    const rows = Object.entries(counts).sort(([, one], [, other]) => other - one)
      .map(([place, members]) => [by === "host" ? hostLink(place) : place, number(members)]);
    return table(`Members by ${by}`, ["Where", "Members"], rows, { numeric: [1], empty: "no members" });
  });
  return [
    facts([["Policy", found.policy], ["By", found.by], ["Most on a host", found.max_per_host],
      ["Counted by", found.count_by.join(", ")], ["Members", count(found.members, "claim")]]),
    ...places,
  ];
}
