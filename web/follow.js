// Live files: everything on the page that changes comes by one stream of events, because a browser has few connections.
//
// `followValue` tells each new content of a file, `followLog` the end of a log and then each line that is added. When the stream
// breaks, it is opened again, and logs begin anew with their end: after a restart of the host offsets mean something else.

import { ask, read, tail, url } from "./fs.js";

const followed = new Map(); // path -> {from, value, handlers}
const watchers = new Set();
let state = "connecting";
let controller = null;
let timer = null;
let failures = 0;

/** Calls `then` with `connecting`, `live` or `lost` whenever that changes, and at once. */
export function onState(then) {
  watchers.add(then);
  then(state);
  return () => watchers.delete(then);
}

function setState(next) {
  if (next === state) return;
  state = next;
  watchers.forEach((then) => then(state));
}

/** Tells each content of a file; a failure ends it. */
export function followValue(path, onValue, onError = () => {}) {
  return add(path, { onValue, onError }, 0);
}

/** Tells the end of a log as `onLines(lines, true)`, and then what is added as `onLines(lines, false)`. */
export function followLog(path, onLines, { bytes = 262144, onError = () => {} } = {}) {
  let stop = () => {};
  let gone = false;
  const begin = async () => {
    try {
      const { lines, end, cut } = await tail(path, bytes);
      if (gone) return;
      onLines(lines, true, cut);
      stop();
      stop = add(path, { onLines: (more) => onLines(more, false), onError, again: begin }, end);
    } catch (error) {
      if (!gone && error.status !== 0) onError(error);
      else if (!gone) setTimeout(() => gone || begin(), 1000);
    }
  };
  begin();
  return () => {
    gone = true;
    stop();
  };
}

function add(path, handlers, from) {
  const entry = followed.get(path) ?? { from, value: undefined, handlers: new Set() };
  followed.set(path, entry);
  entry.handlers.add(handlers);
  if (handlers.onValue && entry.value !== undefined) handlers.onValue(entry.value);
  if (entry.handlers.size === 1) reopen();
  return () => {
    entry.handlers.delete(handlers);
    if (entry.handlers.size === 0 && followed.get(path) === entry) {
      followed.delete(path);
      reopen();
    }
  };
}

/** Opens the stream with the files that are followed now. */
function reopen(delay = 30) {
  clearTimeout(timer);
  timer = setTimeout(open, delay);
}

async function open() {
  controller?.abort();
  if (followed.size === 0) return;
  const own = new AbortController();
  controller = own;
  const query = [...followed].map(([path, { from }]) => `follow=${url(path).slice(3)}&from=${from}`).join("&");
  try {
    const response = await ask("GET", `/fs/?${query}`, { headers: { accept: "text/event-stream" }, signal: own.signal });
    if (failures > 0) {
      failures = 0;
      for (const { handlers } of [...followed.values()]) handlers.forEach((handler) => handler.again?.());
    }
    setState("live");
    await events(response.body, heard);
  } catch (error) {
    if (own.signal.aborted) return;
    if (error.status === 401) return setState("lost");
  }
  if (own.signal.aborted) return;
  setState("lost");
  failures += 1;
  reopen(Math.min(5000, 250 * 2 ** Math.min(failures, 5)));
}

function heard(name, { path, lines, end, value, error }) {
  const entry = followed.get(path);
  if (!entry) return;
  if (name === "lines") {
    entry.from = end;
    entry.handlers.forEach((handler) => handler.onLines?.(lines));
  } else if (name === "value" && value !== entry.value) {
    entry.value = value;
    entry.handlers.forEach((handler) => handler.onValue?.(value));
  } else if (name === "error") {
    entry.handlers.forEach((handler) => handler.onError?.(error));
  }
}

/** Reads a stream of events to its end. */
async function events(body, then) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const fields = {};
      for (const line of rest.slice(0, end).split("\n")) {
        const at = line.indexOf(": ");
        if (at > 0) fields[line.slice(0, at)] = (fields[line.slice(0, at)] ?? "") + line.slice(at + 2);
      }
      rest = rest.slice(end + 2);
      if (fields.data) then(fields.event, JSON.parse(fields.data));
    }
  }
}

/** Reads a file now, for something that was told by an event. */
export { read };
