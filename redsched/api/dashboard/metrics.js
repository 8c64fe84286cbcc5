// The API's metrics, in the text format of Prometheus: counters, gauges and histograms, and what happened between two reads.

/** Return the values of the samples by name, with those of all labels but `le` summed; buckets are by their bound. */
export function parsed(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    if (!name) continue;
    const bound = /(?:^|,)le="([^"]+)"/.exec(labels)?.[1];
    const key = bound ? `${name} ${bound}` : name;
    found.set(key, (found.get(key) ?? 0) + Number(value));
  }
  return found;
}

/** Return how much a counter has grown between two reads; 0 after a restart of the API. */
export function growth(before, after, name) {
  return Math.max(0, (after.get(name) ?? 0) - (before.get(name) ?? 0));
}

/** Return the quantile (0 to 1) of what a histogram got between two reads, as a bucket's upper bound; null for nothing. */
export function quantile(before, after, name, part) {
  const bounds = [...after.keys()].filter((key) => key.startsWith(`${name}_bucket `)).map((key) => key.split(" ")[1])
    .map((text) => ({ text, bound: text === "+Inf" ? Infinity : Number(text) })).sort((one, other) => one.bound - other.bound);
  const grown = bounds.map(({ text }) => growth(before, after, `${name}_bucket ${text}`));
  const total = grown.at(-1) ?? 0;
  if (!total) return null;
  const place = grown.findIndex((number) => number >= part * total);
  return Number.isFinite(bounds[place].bound) ? bounds[place].bound : bounds.at(-2)?.bound ?? null;
}
