// The fleet: a heat map by zone, a table of the zones, and a table of the hosts in the same order.

import { amountsOf, classes, condition, usedPart } from "/assets/fleet.js";
import { cellFor, palette, ZoneMap } from "/assets/heat_map.js";
import { count, field, h, hostLink, number, percent, refresh, table } from "/assets/dom.js";

const REDRAW_MS = 250;
const ROWS = 200;
/** Numbers in names count as numbers: ci-2 comes before ci-10. */
const NATURAL = new Intl.Collator("en", { numeric: true });
const LEGEND = [
  ["heat-0", "under 20 %"], ["heat-1", "20 to 40"], ["heat-2", "40 to 60"], ["heat-3", "60 to 80"],
  ["heat-4", "80 to 100"], ["heat-over", "over 100"], ["heat-closed", "disabled, draining", true],
  ["heat-away", "down, lost, not attested", true], ["heat-none", "has none of it"],
];

let resource = "";
let order = "name";

/** Show the page in `main`; return what ends it. */
export function fleetPage(main, { fleet }) {
  const page = new FleetPage(main, fleet);
  const changed = () => page.later();
  const theme = matchMedia("(prefers-color-scheme: dark)");
  const resized = new ResizeObserver(changed);
  fleet.addEventListener("change", changed);
  theme.addEventListener("change", changed);
  resized.observe(main);
  page.draw();
  return () => {
    fleet.removeEventListener("change", changed);
    theme.removeEventListener("change", changed);
    resized.disconnect();
    page.end();
  };
}

class FleetPage {
  #timer = 0;
  #zones = new Map();

  constructor(main, fleet) {
    this.fleet = fleet;
    this.choice = h("select", { change: () => { resource = this.choice.value; this.draw(); } });
    this.order = h("select", { change: () => { order = this.order.value; this.draw(); } },
      h("option", { value: "name" }, "name"), h("option", { value: "use" }, "use, the fullest first"));
    this.order.value = order;
    this.filter = h("input", { type: "search", placeholder: "part of a name", input: () => this.draw() });
    this.tip = h("p", { class: "tip", "aria-live": "polite" });
    this.map = h("div", { id: "map" });
    this.zones = h("div");
    this.rows = h("div");
    this.list = h("details", { id: "hosts", toggle: () => this.draw() },
      h("summary", {}, "Hosts as a table"), this.rows);
    this.total = h("p", { class: "total" });
    main.replaceChildren(
      h("h1", {}, "Fleet"), this.total,
      h("form", { class: "bar", submit: (event) => event.preventDefault() },
        field("Resource class", this.choice), field("Order", this.order), field("Hosts", this.filter)),
      legend(), this.tip, this.map, this.zones, this.list,
    );
  }

  later() {
    this.#timer ||= setTimeout(() => this.draw(), REDRAW_MS);
  }

  end() {
    clearTimeout(this.#timer);
  }

  draw() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const hosts = [...this.fleet.hosts.values()].filter((host) => host.name.includes(this.filter.value.trim()));
    this.#offer(classes(this.fleet.hosts.values()));
    const byZone = grouped(hosts);
    this.total.textContent = totalOf(hosts, this.fleet);
    this.#drawMap(byZone);
    refresh(this.zones, zoneTable(byZone));
    if (this.list.open) this.#drawList([...byZone.values()].flat());
  }

  /** Offer these resource classes, with the same one chosen. */
  #offer(found) {
    const offered = ["", ...found];
    if (offered.join() !== [...this.choice.options].map((option) => option.value).join()) {
      const options = offered.map((name) => h("option", { value: name }, name || "the fullest of each host"));
      this.choice.replaceChildren(...options);
    }
    if (!offered.includes(resource)) resource = "";
    this.choice.value = resource;
  }

  #drawMap(byZone) {
    const names = [...byZone.keys()];
    if (names.join("\n") !== [...this.#zones.keys()].join("\n")) {
      const say = (text) => (this.tip.textContent = text);
      this.#zones = new Map(names.map((zone) => [zone, new ZoneMap(zone || "no zone", say)]));
      this.map.replaceChildren(...names.map((zone) =>
        h("section", {}, h("h2", {}, zone || "no zone"), this.#zones.get(zone).canvas)));
    }
    const width = this.map.clientWidth;
    const cell = cellFor([...byZone.values()], width);
    const colours = palette();
    for (const [zone, hosts] of byZone) this.#zones.get(zone).draw(hosts, resource, cell, width, colours);
  }

  #drawList(hosts) {
    const rows = hosts.slice(0, ROWS).map((host) => {
      const part = usedPart(host, resource);
      return [hostLink(host.name), host.zone, condition(host), part === null ? "" : percent(part),
        freeText(host, resource), number(host.claims)];
    });
    const caption = hosts.length > ROWS
      ? `The first ${ROWS} of ${number(hosts.length)} hosts: type a part of a name to see others`
      : count(hosts.length, "host");
    refresh(this.rows, table(caption, ["Host", "Zone", "State", "Used", "Free", "Claims"], rows,
      { numeric: resource ? [3, 4, 5] : [3, 5] }));
  }
}

/** Return what is free of a class of a host; of all its classes without one. */
function freeText(host, chosen) {
  const free = (name) => {
    const found = amountsOf(host, name);
    return found && number(found.capacity - found.claimed - found.external);
  };
  return chosen ? free(chosen) ?? "" : classes([host]).map((name) => `${name}=${free(name)}`).join(" ");
}

function grouped(hosts) {
  const parts = new Map(order === "name" ? [] : hosts.map((host) => [host, usedPart(host, resource) ?? -1]));
  const byName = (one, other) => NATURAL.compare(one.name, other.name);
  hosts.sort((one, other) => (parts.get(other) ?? 0) - (parts.get(one) ?? 0) || byName(one, other));
  const zones = Map.groupBy(hosts, (host) => host.zone);
  return new Map([...zones].sort(([one], [other]) => NATURAL.compare(one, other)));
}

function totalOf(hosts, fleet) {
  if (!hosts.length) return nothing(fleet);
  const open = hosts.filter((host) => condition(host) === "up").length;
  const claims = hosts.reduce((sum, host) => sum + host.claims, 0);
  return `${count(hosts.length, "host")}, ${number(open)} open for claims; ${count(claims, "claim")}.`;
}

/** Return why the page shows no host. */
function nothing({ hosts, state, detail }) {
  if (hosts.size) return "No host has this in its name.";
  if (state === "loading") return "The hosts are being read.";
  return state === "failed" ? `The hosts cannot be read: ${detail}.` : "No hosts: each appears once its agent reports it.";
}

function zoneTable(byZone) {
  const rows = [...byZone].map(([zone, hosts]) => {
    const sum = { capacity: 0, used: 0 };
    for (const host of hosts) {
      const found = resource && amountsOf(host, resource);
      sum.capacity += found ? found.capacity : 0;
      sum.used += found ? found.claimed + found.external : 0;
    }
    const open = hosts.filter((host) => condition(host) === "up").length;
    const part = sum.capacity ? percent(sum.used / sum.capacity) : "";
    const shown = resource ? [number(sum.capacity), number(sum.used), part] : [];
    return [zone || "no zone", number(hosts.length), number(open), ...shown];
  });
  const headings = ["Zone", "Hosts", "Take claims", ...(resource ? ["Capacity", "Used", "Part"] : [])];
  return table(resource ? `Zones: ${resource}` : "Zones", headings, rows, { numeric: [1, 2, 3, 4, 5] });
}

function legend() {
  return h("ul", { class: "legend", "aria-label": "Colours: used part" }, LEGEND.map(([name, text, isStruck]) =>
    h("li", {}, h("span", { class: `swatch ${name}${isStruck ? " struck" : ""}`, "aria-hidden": "true" }), text)));
}
