// The status: what is wrong and what to do, then each cell and the servers of the store.

import { claimLink, count, facts, h, hostLink, number, refresh, table, time } from "/assets/dom.js";
import { sentence } from "/assets/status.js";

const MIB = 1_048_576;
/** What the names of a problem lead to, by its kind. */
const LINKS = {
  "host-down": hostLink, "host-lost": hostLink, "host-returned": hostLink, fencing: hostLink, "fence-failed": hostLink, "host-unattested": hostLink, "over-capacity": hostLink, unusable: hostLink, unsettled: hostLink, notifications: hostLink,
  ending: claimLink, "ending-host-down": claimLink, pending: claimLink, overdue: claimLink,
};

/** Show the page in `main`; return what ends it. */
export function statusPage(main, { status }) {
  const content = h("div");
  const draw = () => refresh(content, ...parts(status));
  main.replaceChildren(h("h1", {}, "Status"), content);
  status.addEventListener("change", draw);
  draw();
  return () => status.removeEventListener("change", draw);
}

function parts({ report, problem, readAt }) {
  if (!report) return [h("p", {}, problem ? "It has not been read yet." : "Reading.")];
  return [problem ? h("p", { class: "bad" }, `It cannot be read now. What follows was so at ${time(readAt)}.`) : verdict(report), ...screen(report)];
}

function verdict({ healthy, problems }) {
  return h("p", { class: `verdict ${healthy ? "good" : ""}` }, healthy ? "Nothing is wrong" : count(problems.length, "problem"));
}

function screen({ problems, cells, servers, durability }) {
  return [
    ...problems.map(problemBox),
    ...cells.flatMap(cellParts),
    h("h2", {}, "Store"),
    table("Servers", ["Server", "Version", "Role", "Memory", "Disk"], servers.map(serverRow)),
    h("p", { class: "faint" }, `Durability of this API's claims: ${durability}`),
  ];
}

function problemBox(problem) {
  const link = LINKS[problem.kind] ?? ((name) => name);
  const about = problem.about.flatMap((name) => [link(name), " "]);
  return h("section", { class: "bad" },
    h("p", {}, h("strong", {}, sentence(problem))),
    problem.advice ? h("p", {}, `${capital(problem.advice)}${problem.commands.length ? ":" : "."}`) : null,
    problem.commands.length ? h("pre", {}, problem.commands.join("\n")) : null,
    about.length ? h("p", {}, "About: ", about, problem.count > problem.about.length ? `of ${problem.count}` : "") : null);
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function cellParts(cell) {
  const { hosts, claims } = cell;
  const claimsText = Object.entries(claims).map(([state, amount]) =>
    `${cell.at_least.includes(state) ? "at least " : ""}${number(amount)} ${state}`);
  const agents = Object.entries(hosts.agent_versions).map(([version, amount]) => `${number(amount)} of ${version || "an unknown release"}`);
  return [
    h("h2", {}, `Cell ${cell.name}`),
    facts([
      ["Epoch", `${cell.epoch}, ${settled(cell)}`],
      ["The store has kept its data since", `${time(cell.epoch_began_ms)} (${seconds(cell.now_ms - cell.epoch_began_ms)})`],
      ["Hosts", hostsText(hosts)],
      ["Agents", agents.join(", ") || "none"],
      ["Oldest report of those up", hosts.slowest ? h("span", {}, hostLink(hosts.slowest), ` ${seconds(hosts.slowest_ms)} ago`) : ""],
      ["Draining", cell.draining.length ? h("span", {}, cell.draining.flatMap((name) => [hostLink(name), " "])) : ""],
      ["Claims", claimsText.join(", ")],
      ["Last audit", audit(cell)],
    ]),
    table("Schedulers", ["Release", "Machine", "Process", "Behind", "Seen"],
      cell.schedulers.map((one) => [one.version, one.node, one.pid, seconds(one.lag_ms), `${seconds(one.seen_ms)} ago`])),
  ];
}

function hostsText({ total, up, down, written_off: lost, disabled, draining, unattested }) {
  const text = (states) => Object.entries(states).filter(([, amount]) => amount).map(([name, amount]) => `${number(amount)} ${name}`).join(", ");
  const closed = text({ disabled, draining, "not attested": unattested });
  return `${number(total)}: ${text({ up, down, "written off": lost }) || "0 up"}${closed ? `; of them ${closed}` : ""}`;
}

function settled({ settle_at_ms: until, unattested }) {
  if (until === null) return "settled";
  return `waits for ${unattested < 0 ? "its hosts" : count(unattested, "host")} until ${time(until)}`;
}

function audit({ audit: found, now_ms: now }) {
  if (!found) return "none yet";
  return `${seconds(now - found.at_ms)} ago: ${count(found.repaired, "problem")} repaired, ${number(found.broken)} left`;
}

function serverRow(one) {
  const role = one.primary ? `replica of ${one.primary}${one.is_linked ? "" : ", not connected"}`
    : `primary with ${count(one.replicas, "replica")}`;
  const limit = one.max_memory_bytes ? `of ${mib(one.max_memory_bytes)}` : "without a limit";
  const disk = `${one.append_only ? "append-only file" : "no append-only file"}, the last write ${one.saved ? "succeeded" : "failed"}`;
  return [one.name || "the store", one.version, role, `${mib(one.memory_bytes)} ${limit}, ${one.memory_policy}`, disk];
}

function mib(bytes) {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

function seconds(ms) {
  const amount = Math.max(0, Math.round(ms / 1000));
  if (amount < 120) return `${amount} s`;
  return amount < 7200 ? `${Math.round(amount / 60)} min` : `${Math.round(amount / 3600)} h`;
}
