// The agents as the page knows them: read once, and again when an event tells of a change. All panels share this.

import { followLog, followValue } from "./follow.js";
import { exists, list, readJson } from "./fs.js";
import { objects, parse } from "./format.js";
import { useEffect, useState } from "./ui.js";

/** The order in which agents need somebody. */
export const ORDER = ["approval", "blocked", "stalled", "working", "idle", "done"];

/** The most working agents whose status is followed as it changes; the others are read when an event tells of them. */
const FOLLOWED = 24;
const KEPT_EVENTS = 10_000;

export const store = {
  agents: new Map(),
  loaded: false,
  error: undefined,
  /** Whether this browser may see all of the host. */
  operator: undefined,
  events: [],
  eventsCut: false,
  /** Panels whose files are there. */
  approvals: false,
  views: false,
};

const watchers = new Set();
let announced = false;

function changed() {
  if (announced) return;
  announced = true;
  requestAnimationFrame(() => {
    announced = false;
    store.version = (store.version ?? 0) + 1;
    watchers.forEach((then) => then(store.version));
  });
}

/** Draws a panel again whenever the agents or events change. */
export function useStore() {
  const [, setVersion] = useState(0);
  useEffect(() => {
    watchers.add(setVersion);
    return () => watchers.delete(setVersion);
  }, []);
  return store;
}

/** The agents, those that need somebody first. */
export function byNeed(agents = [...store.agents.values()]) {
  const rank = (agent) => ORDER.indexOf(agent.attention);
  return agents.sort((a, b) => rank(a) - rank(b) || (b.updated_at_ms ?? 0) - (a.updated_at_ms ?? 0) || a.agent_id.localeCompare(b.agent_id));
}

/** The file that shows the figures of an agent. */
export function statusFile(id) {
  return `/agents/${id}/chat/status.json`;
}

function put(row) {
  store.agents.set(row.agent_id, { ...store.agents.get(row.agent_id), ...row });
  changed();
}

async function loadAll() {
  try {
    if (store.operator === undefined) await look();
    if (store.operator) {
      const rows = await readJson("/meta/agents.json");
      store.agents = new Map(rows.map((row) => [row.agent_id, row]));
    } else {
      // An agent sees its own part: whichever agents are listed for it.
      const { entries } = await list("/agents");
      const ids = entries.filter((entry) => entry.type === "directory").map((entry) => entry.name);
      await Promise.all(ids.slice(0, 100).map((id) => refresh(id)));
    }
  } catch (error) {
    store.error = error;
    return changed();
  }
  store.loaded = true;
  store.error = undefined;
  changed();
  followWorking();
}

/** Looks which parts of the tree are there for this browser. */
async function look() {
  const [top, operator] = await Promise.all([list("/"), exists("/meta/agents.json")]);
  const names = new Set(top.entries.map((entry) => entry.name));
  store.approvals = names.has("approvals");
  store.operator = operator;
  if (!names.has("projects")) return;
  // Nobody waits for this: the first list is shown before it.
  hasViews().then((views) => {
    store.views = views;
    changed();
  }, () => {});
}

async function hasViews() {
  const { entries } = await list("/projects");
  const projects = entries.filter((entry) => entry.type === "directory").slice(0, 20);
  return (await Promise.all(projects.map((entry) => exists(`/projects/${entry.name}/views`)))).some(Boolean);
}

async function refresh(id) {
  try {
    put({ agent_id: id, ...(await readJson(statusFile(id))) });
  } catch (error) {
    if (error.status === 404) {
      store.agents.delete(id);
      changed();
    }
  }
}

const dirty = new Set();
let due = null;

/** Something happened to an agent: its figures are read again soon. */
function touch(id) {
  dirty.add(id);
  due ??= setTimeout(async () => {
    due = null;
    const ids = [...dirty];
    dirty.clear();
    if (ids.length > 20 || ids.some((id) => !store.agents.has(id))) await loadAll();
    else await Promise.all(ids.map(refresh));
    followWorking();
  }, 200);
}

const following = new Map();

/** Agents that work change without events: those that are first in the list are followed. */
function followWorking() {
  const working = byNeed().filter((agent) => ["working", "stalled"].includes(agent.attention)).slice(0, FOLLOWED);
  const wanted = new Set(working.map((agent) => agent.agent_id));
  for (const [id, stop] of following) {
    if (!wanted.has(id)) {
      stop();
      following.delete(id);
    }
  }
  for (const id of wanted) {
    if (!following.has(id)) following.set(id, followValue(statusFile(id), (text) => put({ agent_id: id, ...parse(text) })));
  }
}

/** Begins: called once. */
export async function begin() {
  await loadAll();
  const log = store.operator ? "/meta/events.ndjson" : `/agents/${[...store.agents.keys()][0] ?? "self"}/events/log.ndjson`;
  const own = store.operator ? undefined : [...store.agents.keys()][0];
  followLog(
    log,
    (lines, anew, cut) => {
      const events = objects(lines).map((event) => ({ agent: own, ...event }));
      if (anew) {
        store.events = events;
        store.eventsCut = cut;
        if (store.loaded) loadAll();
      } else {
        store.events = [...store.events, ...events].slice(-KEPT_EVENTS);
        new Set(events.map((event) => event.agent)).forEach((agent) => agent && touch(agent));
      }
      changed();
    },
    { bytes: 1 << 20 },
  );
}
