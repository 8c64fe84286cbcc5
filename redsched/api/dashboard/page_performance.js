// Conflicts, latencies and the age of the replicas, from the API's metrics, for as long as the page is open.

import { text } from "/assets/api.js";
import { h, percent, refresh } from "/assets/dom.js";
import { AGAIN_MS, load } from "/assets/load.js";
import { growth, parsed, quantile } from "/assets/metrics.js";
import { plot } from "/assets/plot.js";

const MOST = 360;

/** Show the page in `main`; return what ends it. */
export function performancePage(main, { show }) {
  const content = h("div", { id: "plots" }, h("p", { class: "faint" }, "The first points come in 5 seconds."));
  main.replaceChildren(h("h1", {}, "Performance"),
    h("p", { class: "faint" }, `Of this API, every ${AGAIN_MS / 1000} seconds while the page is open. Latencies are the bounds of histograms. For days, and for all APIs: Prometheus and Grafana.`),
    content);
  const points = [];
  let before = null;
  const draw = (now) => {
    if (before) points.push({ at: Date.now(), ...point(before, now) });
    if (points.length > MOST) points.shift();
    before = now;
    if (points.length) refresh(content, ...plots(points));
  };
  return load(show, async () => ({ metrics: parsed(await text("/metrics")), ms: performance.now() }), draw, { isRepeated: true });
}

/** Return what happened between two reads: longer apart than usual if the tab was hidden, or the API away. */
function point({ metrics: before, ms: since }, { metrics: now, ms }) {
  const calls = growth(before, now, "redsched_claim_seconds_count");
  const halves = (name) => [0.5, 0.99].map((part) => quantile(before, now, name, part));
  return {
    rate: [(1000 * growth(before, now, "redsched_selections_total")) / (ms - since)],
    conflicts: [calls ? growth(before, now, "redsched_claim_conflicts_total") / calls : null],
    decision: halves("redsched_decision_seconds"),
    claim: halves("redsched_claim_seconds"),
    age: [now.get("redsched_cache_lag_seconds") ?? null],
  };
}

function plots(points) {
  const of = (name) => points.map((one) => ({ at: one.at, values: one[name] }));
  return [
    plot("Selections a second", ["selections"], of("rate"), (value) => value.toFixed(1)),
    plot("Conflict fraction", ["of claim calls"], of("conflicts"), percent),
    plot("Decision", ["median", "99 %"], of("decision"), duration),
    plot("Claim call", ["median", "99 %"], of("claim"), duration),
    plot("Age of the replica", ["age"], of("age"), duration),
  ];
}

function duration(seconds) {
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  return seconds < 1 ? `${(seconds * 1e3).toFixed(1)} ms` : `${seconds.toFixed(1)} s`;
}
