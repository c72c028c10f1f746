// The client of /fs: the page has no other way to the host. Every function here is one request that `curl` could make.

/** A refusal of the host: `code` and `message` are those of the tree. */
export class FsError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const ended = new Set();

/** Calls `then` when the host does not know this browser any more. */
export function onSessionEnd(then) {
  ended.add(then);
  return () => ended.delete(then);
}

/** A path of the tree as the path of a request. */
export function url(path) {
  return "/fs" + path.split("/").map(encodeURIComponent).join("/");
}

export async function ask(method, address, options = {}) {
  let response;
  try {
    response = await fetch(address, { method, credentials: "same-origin", redirect: "error", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new FsError(0, "unreachable", "the host does not answer");
  }
  if (response.ok) return response;
  const text = await response.text();
  let problem = {};
  try {
    problem = JSON.parse(text);
  } catch {
    // not a refusal of the tree
  }
  if (response.status === 401) ended.forEach((then) => then());
  throw new FsError(response.status, problem.code ?? "refused", problem.detail ?? `the host answered ${response.status}`);
}

/** The text of a file. A file that waits is only looked at, unless `wait` says for how many seconds. */
export async function read(path, { wait = 0, signal, most } = {}) {
  const headers = most ? { range: `bytes=0-${most - 1}` } : {};
  return (await ask("GET", `${url(path)}?wait=${wait}`, { signal, headers })).text();
}

export async function readJson(path, options) {
  return JSON.parse(await read(path, options));
}

/** The end of a log: its last whole lines, and the offset after them. */
export async function tail(path, bytes = 262144, signal) {
  let response;
  try {
    response = await ask("GET", url(path), { headers: { range: `bytes=-${bytes}` }, signal });
  } catch (error) {
    if (error.status === 416) return { lines: [], end: 0, cut: false };
    throw error;
  }
  const range = /bytes (\d+)-(\d+)\/(\d+)/.exec(response.headers.get("content-range") ?? "");
  const text = new TextDecoder().decode(await response.arrayBuffer());
  const cut = range !== null && Number(range[1]) > 0;
  const total = range ? Number(range[3]) : new TextEncoder().encode(text).length;
  const whole = text.lastIndexOf("\n") + 1;
  const begin = cut ? text.indexOf("\n") + 1 : 0;
  const lines = text.slice(begin, whole).split("\n").filter((line) => line !== "");
  return { lines, end: total - new TextEncoder().encode(text.slice(whole)).length, cut };
}

/** The names in a directory: `{entries, truncated}`. */
export async function list(path, { max = 1000, after, signal } = {}) {
  const more = after === undefined ? "" : `&after=${encodeURIComponent(after)}`;
  return (await ask("GET", `${url(path)}?max=${max}${more}`, { signal })).json();
}

/** What stands at a path: `{name, type, kind, size, modified_ms}`. */
export async function stat(path) {
  return (await ask("GET", `${url(path)}?stat`)).json();
}

/** Writes a command; its job, or with `wait` its answer. */
export async function command(path, body, { wait = 0 } = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await ask("POST", url(path) + (wait ? `?wait=${wait}` : ""), { body: text });
  const answer = await response.text();
  try {
    return JSON.parse(answer);
  } catch {
    return answer;
  }
}

export async function write(path, text) {
  await ask("PUT", url(path), { body: text });
}

/** Whether there is such a path for this caller. */
export async function exists(path) {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}

export async function logOut() {
  await ask("POST", "/logout");
}
