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
  // Of an empty file no part can be asked for.
  const { size } = await stat(path);
  const begin = Math.max(0, size - bytes);
  if (size === 0) return { lines: [], end: 0, cut: false };
  const response = await ask("GET", url(path), { headers: { range: `bytes=${begin}-${size - 1}` }, signal });
  const part = new Uint8Array(await response.arrayBuffer());
  // What is not a whole line at either end is left out.
  const whole = part.lastIndexOf(10) + 1;
  const first = begin > 0 ? part.indexOf(10) + 1 : 0;
  const lines = new TextDecoder().decode(part.subarray(first, whole)).split("\n").filter((line) => line !== "");
  return { lines, end: begin + whole, cut: begin > 0 };
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

/** Whether there is such a path for this caller; the directory above it must be there. Looked up in the listing, because a browser
 * complains of every answer that is a 404. */
export async function exists(path) {
  const at = path.lastIndexOf("/");
  const { entries } = await list(path.slice(0, at) || "/", { max: 10_000 });
  return entries.some((entry) => entry.name === path.slice(at + 1));
}

export async function logOut() {
  await ask("POST", "/logout");
}
