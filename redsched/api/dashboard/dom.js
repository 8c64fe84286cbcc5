// Elements of the page. Text of the fleet becomes text nodes and nothing else: no module writes HTML.

/** Return an element. `attributes`: functions are listeners by their event (`click`), true and false set and omit. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null).map(textOrNode));
  return element;
}

function textOrNode(child) {
  return child instanceof Node ? child : String(child);
}

/** Return a table with a caption. Cells are texts or nodes; `numeric` has the numbers of right-aligned columns. */
export function table(caption, headings, rows, { numeric = [], empty = "none" } = {}) {
  const kind = (column) => (numeric.includes(column) ? { class: "number" } : {});
  const body = rows.map((row) => h("tr", {}, row.map((cell, column) => h("td", kind(column), cell))));
  const nothing = h("tr", {}, h("td", { colspan: headings.length, class: "faint" }, empty));
  return h(
    "div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, headings.map((name, column) => h("th", { scope: "col", ...kind(column) }, name)))),
      h("tbody", {}, body.length ? body : nothing)),
  );
}

/** Return a list of names and values. */
export function facts(entries) {
  return h("dl", {}, entries.filter(([, value]) => value != null && value !== "").map(([name, value]) =>
    h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** Return a labelled field for a form. */
export function field(label, control) {
  return h("label", { class: "field" }, h("span", {}, label), control);
}

export function number(value) {
  return value.toLocaleString("en");
}

export function percent(part) {
  return `${Math.round(part * 100)} %`;
}

/** Return amounts by slot as text: `VCPU=2 MEMORY_MB=4096`. */
export function amounts(slots) {
  return Object.entries(slots ?? {}).map(([slot, amount]) => `${slot}=${amount}`).join(" ");
}

export function time(ms) {
  return ms ? new Date(ms).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "";
}

export function hostLink(name) {
  return name ? h("a", { href: `#/host/${encodeURIComponent(name)}` }, name) : "";
}

export function claimLink(id) {
  return h("a", { href: `#/claim/${encodeURIComponent(id)}` }, id);
}

/** Return the state of a claim, and whether its host is down or lost: then nothing is known of its work. */
export function stateOnHost(state, { host_condition, host_down_since_ms, leaving }) {
  const leaves = leaving ? ", to leave its host" : "";
  if (!["down", "lost"].includes(host_condition)) return state + leaves;
  const since = host_down_since_ms ? ` since ${time(host_down_since_ms)}` : "";
  return `${state}, host ${host_condition === "lost" ? "written off" : `down${since}`}${leaves}`;
}

/** Return a number with its noun: `1 claim`, `2 claims`. */
export function count(value, noun) {
  return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Return a bar for a part of 1. */
export function meter(part) {
  return stacked(part, 0);
}

/** Return a bar for two parts of 1: what is claimed, and beside it what others use. */
export function stacked(claimed, external) {
  const share = (part, most) => Math.min(most, Math.max(0, part || 0));
  const first = share(claimed, 1);
  const bars = [["claim", first], ["external", share(external, 1 - first)]].map(([kind, part]) => {
    const bar = h("span", { class: kind });
    bar.style.width = `${100 * part}%`;
    return bar;
  });
  return h("div", { class: "meter", "aria-hidden": "true" }, bars);
}

/** Return the best hosts with their scores, and a column for what each weigher adds; nothing without hosts. */
export function ranking(ranked) {
  if (!ranked.length) return "";
  const weighers = [...new Set(ranked.flatMap((one) => Object.keys(one.weighers)))];
  const most = Math.max(...ranked.map((one) => Math.abs(one.score)));
  const isGang = ranked.some((one) => one.member);
  const rows = ranked.map((one) => [hostLink(one.host), ...(isGang ? [one.member] : []), score(one.score),
    meter(one.score / most), ...weighers.map((name) => score(one.weighers[name] ?? 0))]);
  const headings = ["Host", ...(isGang ? ["Member"] : []), "Score", "", ...weighers];
  const first = isGang ? 2 : 1;
  return table("Best hosts", headings, rows, { numeric: [first, ...weighers.map((_, place) => place + first + 2)] });
}

function score(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 3 });
}

/** Replace what an element shows, and keep the focus and the opened details: pages are renewed while they are read. */
export function refresh(element, ...children) {
  const focusable = () => [...element.querySelectorAll("a, button, input, select, summary, [tabindex]")];
  const focused = focusable().indexOf(document.activeElement);
  const opened = [...element.querySelectorAll("details")].map((one) => one.open);
  element.replaceChildren(...children);
  [...element.querySelectorAll("details")].forEach((one, place) => (one.open = opened[place] ?? false));
  if (focused >= 0) focusable()[focused]?.focus({ preventScroll: true });
}
