// The event log, as a table.

import { amounts, claimLink, hostLink, table, time } from "/assets/dom.js";

/** Return a table of events, the newest first. */
export function eventTable(events) {
  const rows = [...events].reverse().map((event) => [
    time(event.at_ms), event.kind, event.claim ? claimLink(event.claim) : "", hostLink(event.host),
    [event.end_reason, event.reason, event.status, amounts(event.slots)].filter(Boolean).join("; "), event.actor ?? "",
  ]);
  return table("Events, the newest first", ["Time", "Kind", "Claim", "Host", "What", "By"], rows);
}
