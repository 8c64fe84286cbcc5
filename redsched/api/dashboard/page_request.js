// A request taken apart: what each filter removes, what nearly fits, where it would go, and then the claim.

import { call, path } from "/assets/api.js";
import { amounts, claimLink, count, field, h, hostLink, meter, number, ranking, table } from "/assets/dom.js";
import { parsedAmounts, words } from "/assets/amounts.js";
import { classes } from "/assets/fleet.js";

const LISTS = { required: "Required traits", forbidden: "Forbidden traits", zone: "Zones", hosts: "Only these hosts" };
const TEXTS = { project: "Project", policy: "Policy" };
const EXAMPLE = "VCPU=2 MEMORY_MB=4096";
const BEST = 10;

/** Show the page in `main`. `host` in the address: a host whose every check is shown. */
export function requestPage(main, context, _, query) {
  const page = new RequestPage(context, query.get("host") ?? "");
  main.replaceChildren(...page.parts);
  return () => {};
}

class RequestPage {
  constructor({ session, fleet, show }, host) {
    this.session = session;
    this.show = show;
    this.host = host;
    this.resources = h("input", { name: "resources", value: EXAMPLE, list: "classes", spellcheck: "false" });
    this.count = h("input", { name: "count", type: "number", min: "1", max: "200", value: "1" });
    this.inputs = Object.fromEntries(Object.keys({ ...LISTS, ...TEXTS }).map((name) => [name, h("input", { name })]));
    this.more = h("textarea", { name: "more", rows: "4", placeholder: '{"server_group": "web"}', spellcheck: "false" });
    this.verdict = h("p", { role: "status", class: "verdict" });
    this.findings = h("div", { id: "findings" });
    const offered = classes(fleet?.hosts.values() ?? []).map((name) => h("option", { value: `${name}=1` }));
    const form = h("form", { class: "request", submit: (event) => this.#explain(event) },
      field("Resources, CLASS=AMOUNT", this.resources), h("datalist", { id: "classes" }, offered),
      field("Places", this.count),
      Object.entries({ ...LISTS, ...TEXTS }).map(([name, label]) => field(label, this.inputs[name])),
      field("Further fields, as JSON", this.more),
      h("button", { class: "main" }, "Explain"));
    const about = host ? [h("p", {}, "Every check of ", hostLink(host), " is shown too.")] : [];
    this.parts = [h("h1", {}, "Request"), ...about, form, this.verdict, this.findings];
  }

  /** Return the body of the request. Throws an Error that says what is wrong with the form. */
  #body() {
    const resources = parsedAmounts(this.resources.value);
    const body = Object.keys(resources).length ? { resources } : {};
    if (this.count.value !== "1") body.count = Number(this.count.value);
    for (const name in LISTS) if (words(this.inputs[name].value).length) body[name] = words(this.inputs[name].value);
    for (const name in TEXTS) if (this.inputs[name].value.trim()) body[name] = this.inputs[name].value.trim();
    return { ...body, ...parsedObject(this.more.value) };
  }

  async #explain(event) {
    event.preventDefault();
    const round = (this.round = (this.round ?? 0) + 1);
    this.verdict.textContent = "Deciding";
    this.findings.replaceChildren();
    this.show(null);
    try {
      const body = this.#body();
      const found = await call("POST", path("/v1/explain", { host: this.host }), body);
      const dryRun = { ...body, claim: false, alternates: body.count || body.members ? 0 : BEST };
      const best = found.fits ? await call("POST", "/v1/selections", dryRun).catch((error) => error) : null;
      if (round !== this.round) return;
      this.verdict.textContent = `${number(found.fits)} of ${count(found.hosts, "host")} fit`;
      this.findings.replaceChildren(...explained(found), ...places(best), ...this.#claimButton(body, best));
    } catch (error) {
      this.verdict.textContent = "";
      this.show(error);
    }
  }

  #claimButton(body, best) {
    if (!this.session.mayClaim || !best || best instanceof Error) return [];
    // The same key for each press, so that a repeated press claims nothing more.
    const headers = body.claim_ids ? {} : { "Idempotency-Key": randomKey() };
    const claimed = h("p", { role: "status" });
    const claim = async () => {
      try {
        const { selections } = await call("POST", "/v1/selections", body, headers);
        button.disabled = true;
        const made = selections.flatMap((one) => [claimLink(one.claim_id), " on ", hostLink(one.host), " "]);
        claimed.replaceChildren("Claimed: ", ...made);
      } catch (error) {
        this.show(error);
      }
    };
    const button = h("button", { id: "claim", type: "button", class: "main", click: claim }, "Claim it");
    return [button, claimed];
  }
}

function explained(found) {
  const { hosts, unsearched, reasons, ranked, nearest, closed, exceeded, checks, cut_short: isCut } = found;
  const unknown = [...found.unknown_zones.map((name) => `zone ${name}`), ...found.unknown_hosts.map((name) => `host ${name}`),
    ...found.unknown_classes.map((name) => `class ${name}`)];
  const about = unsearched ? `The pools of ${number(unsearched)} of these were not searched: fewer may fit.` : "";
  return [
    about || isCut ? h("p", {}, about, isCut ? " The search for changes was cut short." : "") : "",
    unknown.length ? h("p", { class: "bad" }, `Unknown: ${unknown.join(", ")}.`) : "",
    tooMuch(found.largest),
    removed(reasons, hosts),
    tooMany(found.places),
    ranking(ranked ?? []),
    spared(found.spared),
    nearest.length ? nearestTable(nearest) : "",
    closed.length ? table("Would fit if they took claims", ["Host", "Why it takes none"],
      closed.map((one) => [hostLink(one.host), one.reason])) : "",
    exceeded === null ? h("p", {}, "The quota's usage is being counted.") : "",
    exceeded?.length ? table("Limits of the quota that it exceeds", ["Class", "Limit", "Used", "Asked"],
      exceeded.map((one) => [one.resource, one.limit, one.used, one.asked]), { numeric: [1, 2, 3] }) : "",
    ...checks.map((host) => table(`Checks of ${host.host}`, ["Check", "Passed", "Detail"], [
      ...host.checks.map((check) => [check.name, check.ok ? "yes" : "no", check.detail]),
      ...(host.kept ? [["reserved", "", `${amounts(host.kept.slots)} ${keptFor(host.kept)}`]] : []),
    ])),
  ];
}

/** Return which classes no host has enough of, however empty it is. */
function tooMuch(largest) {
  const found = Object.entries(largest ?? {}).map(([name, most]) => `${number(most)} ${name}`);
  return found.length ? h("p", { class: "bad" }, `No host has more than ${found.join(", or more than ")}.`) : "";
}

/** Return why hosts that fit one place do not fit all of them, and how many places fit. */
function tooMany(places) {
  if (!places) {
    return "";
  }
  const rooms = Object.entries(places.domains ?? {}).map(([name, room]) => `${name} has room for ${number(room)}`);
  const rule = places.without ? `Because of ${places.without} (${places.says})` : "By their room";
  return h("p", {}, `${rule}, ${number(places.fits)} of ${number(places.asked)} places fit${rooms.length ? `: ${rooms.join(", ")}` : ""}.`);
}

/** Return which hosts come last because of scarce classes that the request does not ask for. */
function spared(classes) {
  const found = Object.entries(classes ?? {}).map(([name, hosts]) => `${name} (${number(hosts)})`);
  return found.length ? h("p", {}, `Spared: hosts with ${found.join(", ")}, which the request does not ask for.`) : "";
}

function nearestTable(nearest) {
  const headings = ["Host", "Member", "Needs", "Free", "Changes that make it fit"];
  return table("Nearest misses", headings, nearest.map((miss) => [
    hostLink(miss.host) || "a host", miss.member, amounts(miss.needs), free(miss),
    remedies(miss) || "none found",
  ]));
}

/** Return what a host has free, and what of it is kept for a request that waits. */
function free({ free: amount, kept }) {
  return [amounts(amount), kept && `${amounts(kept.slots)} ${keptFor(kept)}`].filter(Boolean).join("; ");
}

function keptFor({ request, project }) {
  return request ? `kept for request ${request}${project ? ` of project ${project}` : ""}` : "kept for another request";
}

/** Return what would make a host fit: changes, the end of claims, or both. */
function remedies({ changes, claims = [], other_claims: others = 0, both = false }) {
  const ends = [...claims.map((one) => one.claim_id), ...(others ? [`${count(others, "claim")} of other projects`] : [])];
  const ways = [changes.join(", "), ends.length ? `the end of ${ends.join(", ")}` : ""];
  return ways.filter(Boolean).join(both ? ", and " : "; or ");
}

/** Return how many hosts each filter removes, as a table with bars. */
function removed(reasons, hosts) {
  if (!reasons.length) return h("p", {}, "No filter removes a host.");
  const rows = reasons.map((one) => [one.reason, number(one.hosts), meter(one.hosts / Math.max(1, hosts))]);
  return table("Hosts that each filter removes first", ["Filter", "Hosts", ""], rows, { numeric: [1] });
}

/** Return where the request would go: the places, and the next best hosts in their order. */
function places(best) {
  if (!best) return [];
  if (best instanceof Error) return [h("p", { class: "bad" }, `A dry run finds no place: ${best.message}`)];
  const rows = best.selections.map((one) => [hostLink(one.host) || "a host", one.member, amounts(one.slots),
    one.alternates.map((other) => other.host).join(", ")]);
  const headings = ["Host", "Member", "Amounts", "Then, in this order"];
  return [h("h2", {}, "Where it would go"), table("A dry run", headings, rows),
    h("p", { class: "faint" }, "One of the best hosts, picked at random: the claim itself may go to another of them.")];
}

function parsedObject(text) {
  if (!text.trim()) return {};
  let found = null;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error(`the further fields are not JSON: ${error.message}`);
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) {
    throw new Error('the further fields are not a JSON object: for example {"server_group": "web"}');
  }
  return found;
}

function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
