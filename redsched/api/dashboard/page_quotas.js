// Quotas: each limit of each project, and how much of it is used.

import { pages } from "/assets/api.js";
import { load } from "/assets/load.js";
import { count, h, number, percent, stacked, table } from "/assets/dom.js";

const NEAR = 0.9;

/** Show the page in `main`. */
export function quotasPage(main, { show }) {
  const found = h("p", { role: "status", class: "faint" }, "Reading");
  const list = h("div");
  main.replaceChildren(h("h1", {}, "Quotas"), found, list);
  return load(show, read, (quotas) => {
    found.textContent = summary(quotas);
    list.replaceChildren(quotaTable(quotas));
  }, { clear: () => found.replaceChildren() });
}

async function read() {
  const found = [];
  for await (const page of pages("/v1/quotas", "quotas")) found.push(...page);
  return found;
}

function summary(quotas) {
  const over = limits(quotas).filter(({ used, limit }) => used > limit).length;
  const near = limits(quotas).filter(isNear).length;
  const usual = `${count(quotas.length, "project")} with a quota.`;
  return [usual, over ? `${count(over, "limit")} exceeded.` : "", near ? `${count(near, "limit")} nearly used up.` : ""].filter(Boolean).join(" ");
}

/** Return whether a limit is nearly used up; one of 0 allows nothing, and nothing of it can be used. */
function isNear({ used, limit }) {
  return limit > 0 && used <= limit && used >= NEAR * limit;
}

function limits(quotas) {
  return quotas.flatMap(({ project, limits: own, used }) =>
    Object.entries(own).map(([name, limit]) => ({ project, name, limit, used: used?.[name] ?? 0 })));
}

function quotaTable(quotas) {
  const rows = limits(quotas).map(({ project, name, limit, used }) => {
    const part = limit ? used / limit : Number(used > 0);
    const state = used > limit ? "exceeded" : isNear({ used, limit }) ? "nearly used up" : "";
    return [claimsLink(project), name, stacked(part, 0), percent(part), number(used), number(limit), state];
  });
  const headings = ["Project", "Limit of", "", "Part", "Used", "Limit", ""];
  return table("Limits, by project", headings, rows, { numeric: [3, 4, 5], empty: "no quotas" });
}

function claimsLink(project) {
  return h("a", { href: `#/claims?project=${encodeURIComponent(project)}` }, project);
}
