// The dashboard: who the caller is, which page the address names, and the live fleet that the pages share.

import { get, hasToken, keepToken } from "/assets/api.js";
import { Fleet } from "/assets/fleet.js";
import { h } from "/assets/dom.js";
import { capacityPage } from "/assets/page_capacity.js";
import { claimPage, claimsPage } from "/assets/page_claims.js";
import { fleetPage } from "/assets/page_fleet.js";
import { groupPage, groupsPage } from "/assets/page_groups.js";
import { AGAIN, AGAIN_MS, passes } from "/assets/load.js";
import { hostPage } from "/assets/page_host.js";
import { performancePage } from "/assets/page_performance.js";
import { plansPage } from "/assets/page_plans.js";
import { quotasPage } from "/assets/page_quotas.js";
import { requestPage } from "/assets/page_request.js";
import { statusPage } from "/assets/page_status.js";
import { banner, Status } from "/assets/status.js";

const PAGES = {
  status: statusPage, fleet: fleetPage, host: hostPage, capacity: capacityPage, claims: claimsPage, claim: claimPage,
  quotas: quotasPage, groups: groupsPage, group: groupPage, plans: plansPage, performance: performancePage,
  request: requestPage,
};
const OF_READERS = ["status", "fleet", "capacity", "groups", "group", "plans", "performance"];
const READERS = ["operator", "reader"];
const LIVE = { loading: "Loading", live: "Live", polling: "Without the feed", failed: "Not up to date" };

const at = (id) => document.getElementById(id);
const main = at("main");
let session = null;
let fleet = null;
let status = null;
let end = () => {};
let timer = 0;
let round = 0;

addEventListener("hashchange", () => {
  if (!session) return;
  open();
  main.focus({ preventScroll: true });
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names pages
  main.focus();
});
// A browser keeps a page that was left, and its stream, for going back: it would use up connections to this API.
addEventListener("pagehide", stop);
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) start();
});
addEventListener("unauthenticated", ({ detail }) => askToken(hasToken() ? detail : ""));
at("sign-in").addEventListener("cancel", (event) => event.preventDefault());
at("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(at("token").value.trim());
  at("token").value = "";
  start();
});
at("sign-out").addEventListener("click", () => {
  keepToken("");
  location.reload();
});
start();

/** Learn the caller's role, and show the page of the address; ask for a token if the API needs one. */
async function start() {
  stop();
  const own = round;
  try {
    const { role } = await get("/v1");
    if (own !== round) return;
    if (role === null) return askToken(hasToken() ? "the API does not accept this token: it may have expired" : "");
    session = { role, mayExplain: role !== "agent", mayClaim: role === "operator" || role === "tenant" };
  } catch (error) {
    return own === round && failed(error);
  }
  if (at("sign-in").open) at("sign-in").close();
  at("who").textContent = `role: ${session.role}`;
  at("sign-out").hidden = !hasToken();
  if (READERS.includes(session.role)) follow();
  open();
}

/** Say why there is no page, also to those who have just entered a token. */
function failed(error) {
  const next = passes(error) ? AGAIN : "";
  if (next) timer = setTimeout(start, AGAIN_MS);
  at("sign-in-problem").textContent = said(error, next);
  show(error, next);
}

function stop() {
  round += 1;
  clearTimeout(timer);
  end();
  end = () => {};
  fleet?.stop();
  status?.stop();
  fleet = status = null;
  at("banner").replaceChildren();
  session = null;
  at("live").textContent = "";
  at("live").dataset.state = "";
}

function follow() {
  fleet = new Fleet();
  const own = fleet;
  own.addEventListener("change", () => {
    const text = own.detail ? `${LIVE[own.state]}: ${own.detail}` : LIVE[own.state];
    if (at("live").textContent !== text) at("live").textContent = text;
    at("live").dataset.state = own.state;
  });
  own.run();
  status = new Status();
  const current = status;
  current.addEventListener("change", () => {
    const line = banner(current);
    const isNew = at("banner").textContent !== (line?.textContent ?? "");
    if (isNew) at("banner").replaceChildren(line ?? ""); // screen readers say again what is replaced
  });
  current.start();
}

function askToken(problem) {
  stop();
  keepToken("");
  at("nav").replaceChildren();
  main.replaceChildren();
  at("sign-in-problem").textContent = problem;
  if (!at("sign-in").open) at("sign-in").showModal();
}

/** Show the page that the address names. */
function open() {
  const [route, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const [name, ...rest] = route.split("/").map(decoded);
  const allowed = Object.entries(tabs());
  const page = Object.hasOwn(PAGES, name) && (fleet || !OF_READERS.includes(name)) ? name : allowed[0][0];
  at("nav").replaceChildren(...allowed.map(([id, title]) =>
    h("a", { href: `#/${id}`, "aria-current": id === page ? "page" : false }, title)));
  end();
  main.replaceChildren();
  const named = rest.join("/");
  document.title = [named, page, "redsched"].filter(Boolean).join(" - ");
  end = PAGES[page](main, { session, fleet, status, show }, named, new URLSearchParams(query));
  scrollTo(0, 0);
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function tabs() {
  const request = session.mayExplain ? { request: "Request" } : {};
  if (!fleet) return { claims: "Claims", ...(session.mayExplain ? { quotas: "Quotas" } : {}), ...request };
  return {
    fleet: "Fleet", status: "Status", capacity: "Capacity", claims: "Claims", quotas: "Quotas", groups: "Groups",
    plans: "Plans", performance: "Performance", ...request,
  };
}

function said({ message }, next) {
  return [message, next].filter(Boolean).join(". ");
}

/** Show an error above the page, with what happens next, until another one is shown; null removes it. */
function show(error, next = "") {
  if (error === null) return document.getElementById("error")?.remove();
  if (error.status === 401) return;
  const fields = (error.body?.errors ?? []).map((one) => h("li", {}, `${one.field}: ${one.message}`));
  const shown = h("div", { class: "bad", id: "error", role: "alert" },
    h("p", {}, said(error, next)), fields.length ? h("ul", {}, fields) : null);
  document.getElementById("error")?.remove();
  main.prepend(shown);
}
