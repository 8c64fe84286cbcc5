// Plans of moves: what a drain, the loss of hosts or a rebalancing would do, and then doing it.

import { call } from "/assets/api.js";
import { claimLink, count, field, h, hostLink, number, table } from "/assets/dom.js";
import { parsedAmounts, words } from "/assets/amounts.js";
import { confirmed } from "/assets/confirm.js";
import { freeTable, planned } from "/assets/plan.js";

const AIMS = [["policy", "better hosts, by a policy"], ["request", "room for a request"], ["waiting", "room for what waits"],
  ["drain", "empty hosts"]];

/** Show the page in `main`. */
export function plansPage(main, context, _, query) {
  main.replaceChildren(h("h1", {}, "Plans"),
    h("p", { class: "faint" }, "A plan is made on a copy of the fleet and changes nothing."),
    ...drainParts(context, query.get("host") ?? ""), ...rebalanceParts(context));
  return () => {};
}

function drainParts({ session, show }, host) {
  const hosts = h("input", { name: "hosts", class: "long", value: host, required: true, spellcheck: "false", placeholder: "h1 h2" });
  const kind = h("select", { name: "kind" }, h("option", { value: "drain" }, "are drained"), h("option", { value: "without" }, "have died"));
  const answer = h("div", { id: "drain", role: "status" });
  const ask = async () => {
    const names = words(hosts.value);
    const found = await call("POST", `/v1/plans/${kind.value}`, { hosts: names });
    const isDrain = kind.value === "drain" && session.role === "operator";
    return [...relocation(found), ...(isDrain ? [drainButton(found, show)] : [])];
  };
  return [h("h2", {}, "If hosts go"),
    h("form", { class: "bar", submit: planned(answer, show, ask) }, field("Hosts", hosts), field("They", kind),
      h("button", { class: "main" }, "Plan")),
    answer];
}

function relocation({ moves, unplaced, classes }) {
  const verdict = unplaced.length ? `${count(unplaced.length, "claim")} would have no other place`
    : `All ${count(moves.length, "claim")} would have another place`;
  return [
    h("p", { class: `verdict ${unplaced.length ? "" : "good"}` }, verdict),
    unplaced.length ? table("Without another place", ["Claim", "Project", "Host", "Why"],
      unplaced.map((one) => [claimLink(one.claim_id), one.project, hostLink(one.host), one.reason])) : "",
    table("Moves", ["Claim", "Project", "From", "To"],
      moves.map((one) => [claimLink(one.claim_id), one.project, hostLink(one.source), hostLink(one.target)])),
    freeTable(classes, "After"),
  ];
}

/** Return the button that drains the hosts of a plan. */
function drainButton({ hosts, moves, unplaced }, show) {
  const text = `${hosts.join(", ")}: no new claims, and ${count(moves.length + unplaced.length, "claim")} will be moved as far as there is room.`;
  return actionButton("drain-now", "Drain them now", text, show, async (said) => {
    for (const [at, host] of hosts.entries()) {
      await call("POST", `/v1/hosts/${encodeURIComponent(host)}/drain`, { move: true });
      said.replaceChildren("Draining: ", ...hosts.slice(0, at + 1).flatMap((one) => [hostLink(one), " "]), "(their pages show what is left)");
    }
  });
}

function rebalanceParts({ session, show }) {
  const aim = h("select", { name: "aim" }, AIMS.map(([value, text]) => h("option", { value }, text)));
  const resources = h("input", { name: "wanted", class: "long", value: "VCPU=8", spellcheck: "false" });
  const places = h("input", { name: "places", type: "number", min: "1", max: "200", value: "1" });
  const hosts = h("input", { name: "emptied", class: "long", placeholder: "h1 h2", spellcheck: "false" });
  const policy = h("input", { name: "policy", placeholder: "that of the settings", spellcheck: "false" });
  const most = h("input", { name: "max-moves", type: "number", min: "1", max: "200", value: "10" });
  const fields = { request: [field("Resources", resources), field("Places", places)], drain: [field("Hosts", hosts)],
    policy: [field("Policy", policy)], waiting: [] };
  const own = h("span", { class: "inline" });
  const offer = () => own.replaceChildren(...fields[aim.value]);
  aim.addEventListener("change", offer);
  offer();
  const bodies = {
    request: () => ({ request: { resources: parsedAmounts(resources.value), count: Number(places.value) } }),
    drain: () => ({ hosts: words(hosts.value) }),
    policy: () => ({ policy: policy.value.trim() }),
    waiting: () => ({}),
  };
  const answer = h("div", { id: "rebalance", role: "status" });
  const ask = async () => {
    const body = { for: aim.value, max_moves: Number(most.value), ...bodies[aim.value]() };
    const found = await call("POST", "/v1/plans/rebalance", body);
    return [...rebalancing(found), ...(session.role === "operator" && found.moves.length ? [applyButton(found.moves, show)] : [])];
  };
  return [h("h2", {}, "Rebalance"),
    h("form", { class: "bar", submit: planned(answer, show, ask) }, field("For", aim), own, field("Most moves", most),
      h("button", { class: "main" }, "Plan")),
    answer];
}

function rebalancing({ aim, moves, before, after, goal, is_cut: isCut }) {
  const of = { request: "places that fit", waiting: "waiting that get a place", drain: "claims left on the hosts", policy: "sum of the gains of scores" }[aim];
  const wanted = goal ? `, of ${number(goal)} wanted` : "";
  return [
    h("p", { class: "verdict" }, moves.length ? `${count(moves.length, "move")}: ${of} ${number(before)} → ${number(after)}${wanted}` : `No move gains anything: ${of} ${number(before)}${wanted}`),
    isCut ? h("p", {}, "The search took too long: more may be gained.") : "",
    table("Moves, in this order", ["Claim", "Project", "From", "To", "Gain"],
      moves.map((one) => [claimLink(one.claim_id), one.project, hostLink(one.source), hostLink(one.target), one.gain])),
  ];
}

/** Return the button that makes the moves of a plan, one after the other. */
function applyButton(moves, show) {
  const text = `${count(moves.length, "claim")} will be moved, one after the other. The first that fails ends it.`;
  return actionButton("apply", "Make these moves", text, show, async (said) => {
    for (const [done, { claim_id, token, source, target }] of moves.entries()) {
      said.textContent = `Move ${done + 1} of ${moves.length}: ${claim_id} to ${target}`;
      const { moves: [made] } = await call("POST", "/v1/plans/rebalance/apply", { moves: [{ claim_id, token, source, target }] });
      if (made.problem) throw new Error(`${done} of ${count(moves.length, "move")} made. ${claim_id} was not moved: ${made.problem}`);
    }
    said.textContent = `${count(moves.length, "move")} made.`;
  });
}

/** Return a button that asks, and then acts once; `act` gets the element that says how far it is. */
function actionButton(id, title, consequence, show, act) {
  const said = h("p", { role: "status" });
  const button = h("button", { id, type: "button", class: "main", click: async () => {
    if (!(await confirmed(title, consequence))) return;
    button.disabled = true;
    show(null);
    try {
      await act(said);
    } catch (error) {
      button.disabled = false;
      show(error);
    }
  } }, title);
  return h("div", {}, button, said);
}
