// Calls of the API with the user's token, which this tab keeps and no other.

const KEY = "redsched.token";
/** A network that is gone does not say so. The longest plans take some seconds. */
const LONGEST_MS = 60_000;

/** An error response: `status` is 0 if none came, and `body` is the problem. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `the API answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

export function keepToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

/** Return a path with query parameters; a list repeats its name, and empty values are left out. */
export function path(base, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one) parameters.append(name, one);
  }
  return parameters.size ? `${base}?${parameters}` : base;
}

/** Return the JSON of a response. Throws a Problem for an error, or without a response. */
export async function call(method, url, body, headers = {}) {
  const response = await send(url, {
    method,
    headers: body === undefined ? headers : { "Content-Type": "application/json", ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.status === 204) return null;
  return response.json().catch(() => {
    throw new Problem(0, { detail: "the response of the API broke off" });
  });
}

/** Return the text of a response. Throws as `call` does. */
export async function text(url) {
  return (await send(url, {})).text();
}

export function get(url, query) {
  return call("GET", path(url, query));
}

/** Items of a page: larger pages hold the API's event loop for longer, and so the requests of others. */
const PAGE = 250;

/** Yield the pages of a list, each as an array: `name` is its member of the response. */
export async function* pages(url, name, query = {}) {
  let after = "";
  do {
    const page = await get(url, { limit: PAGE, ...query, after });
    yield page[name];
    after = page.next;
  } while (after);
}

/** The API sends something every 15 seconds: a stream that is silent for longer leads nowhere, though it looks open. */
const SILENT_MS = 45_000;

/** Call `open` once the stream of changes is open, then `take` with the kind and data of each event, until it ends. */
export async function follow(open, take, signal) {
  const response = await send("/v1/changes", { signal });
  open();
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await read(reader);
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) takeEvent(event, take);
  }
}

async function read(reader) {
  let timer = 0;
  const silence = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Problem(0, { detail: "the feed is silent: the network may be down" })), SILENT_MS);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } catch (error) {
    reader.cancel().catch(() => {});
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function takeEvent(text, take) {
  const lines = Object.fromEntries(text.split("\n").map((line) => line.split(/: ?(.*)/s, 2)));
  if (lines.event && lines.data) take(lines.event, JSON.parse(lines.data));
}

async function send(url, options) {
  const token = sessionStorage.getItem(KEY);
  const headers = token === null ? options.headers : { ...options.headers, Authorization: `Bearer ${token}` };
  let response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(LONGEST_MS), ...options, headers, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "the API cannot be reached: it may be down, or the network" });
  }
  if (response.ok) return response;
  const problem = new Problem(response.status, await response.json().catch(() => ({})));
  // Once for a token: further responses to it must not take the reason away, nor a token entered since.
  const isOfToken = token === sessionStorage.getItem(KEY);
  if (response.status === 401 && isOfToken) dispatchEvent(new CustomEvent("unauthenticated", { detail: problem.message }));
  throw problem;
}
