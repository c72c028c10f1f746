// Events and timeline: what happened, newest last, narrowed by words, kind and agent.

import { Choice, Empty, Facts, Filter, Json, PathLink, Refusal, Rows, Split, html, useEffect, useMemo, useState } from "../ui.js";
import { useStore } from "../agents.js";
import { followLog } from "../follow.js";
import { clock, objects, oneLine } from "../format.js";
import { exists } from "../fs.js";

export function Events() {
  const store = useStore();
  const asked = /^\?agent=(.*)$/.exec(location.hash.slice(8))?.[1];
  const [agent, setAgent] = useState(asked ? decodeURIComponent(asked) : "");
  const [filter, setFilter] = useState("");
  const [kind, setKind] = useState("");
  const [held, setHeld] = useState(undefined);
  const [chosen, setChosen] = useState(undefined);
  const [source, setSource] = useState("events");
  const timeline = useTimeline(source === "timeline" ? agent : "");
  const [hasTimeline, setHasTimeline] = useState(false);
  const sample = agent || [...store.agents.keys()][0];
  useEffect(() => {
    if (sample) exists(`/agents/${sample}/timeline.ndjson`).then(setHasTimeline);
  }, [sample]);
  const all = source === "timeline" ? timeline.lines : (held ?? store.events);
  const kinds = useMemo(() => [...new Set(all.map((event) => event.kind))].sort(), [all.length, source]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = useMemo(
    () => all.filter((event) => (!kind || event.kind === kind) && (source === "timeline" || !agent || event.agent === agent) && (!words.length || words.every((word) => text(event).includes(word)))),
    [all, kind, agent, filter, source],
  );
  const list = html`<p class="title" aria-hidden="true">Events</p>
    <${Filter} value=${filter} onInput=${setFilter} label="Filter events">
      ${hasTimeline ? html`<${Choice} label="Source" value=${source} onChange=${setSource} options=${["events", "timeline"]}/>` : null}
      <${Choice} label="Agent" value=${agent} onChange=${setAgent} options=${[["", "all agents"], ...[...store.agents.keys()].slice(0, 500)]}/>
      <${Choice} label="Kind" value=${kind} onChange=${setKind} options=${[["", "all kinds"], ...kinds]}/>
      <button aria-pressed=${held ? "true" : "false"} onClick=${() => setHeld(held ? undefined : store.events)}>${held ? "Follow" : "Hold"}</button>
    </${Filter}>
    <${Refusal} error=${timeline.error}/>
    <p class="muted small" role="status">${shown.length} of ${all.length}${store.eventsCut && source === "events" ? ", the newest" : ""}</p>
    ${source === "timeline" && !agent ? html`<${Empty}>Choose an agent: each has a timeline of its own.</${Empty}>` : null}
    <${Rows} items=${shown} height=${28} label="Events" stick=${!held} id=${key} selected=${chosen} onSelect=${setChosen} className="events" row=${(event) => html`<span class="cell time">${clock(event.ts_ms ?? event.at_ms)}</span><span class="cell kind">${event.kind}</span><span class="cell who">${event.agent ?? agent}</span><span class="cell grow">${summary(event)}</span>`}/>`;
  const event = shown.find((event) => key(event) === chosen);
  return html`<${Split} open=${Boolean(event)} onBack=${() => setChosen(undefined)} list=${list} detail=${event ? html`<article><h2>${event.kind}</h2><${Facts} rows=${[["agent", event.agent ?? agent], ["number", event.seq], ["at", clock(event.ts_ms ?? event.at_ms)], event.path ? ["path", html`<${PathLink} path=${event.path}/>`] : null]}/><${Json} value=${event.payload ?? event}/></article>` : html`<${Empty}>Choose an event.</${Empty}>`}/>`;
}

function key(event) {
  return `${event.agent ?? ""} ${event.seq ?? event.at_ms}`;
}

const texts = new WeakMap();

function text(event) {
  let found = texts.get(event);
  if (found === undefined) {
    found = JSON.stringify(event).toLowerCase();
    texts.set(event, found);
  }
  return found;
}

function summary(event) {
  const { payload = {}, path = "" } = event;
  if (event.kind === "job") return oneLine(`${payload.service}.${payload.operation} ${payload.state}${payload.error ? `: ${payload.error.message}` : ""}`);
  if (event.kind === "chat") return oneLine(payload.input);
  if (event.kind === "signal") return oneLine(`${payload.event_type ?? ""} ${payload.parameter ?? ""} ${JSON.stringify(payload.payload ?? null)}`);
  if (event.summary) return oneLine(event.summary);
  return oneLine(`${path} ${payload.what ?? ""}`);
}

function useTimeline(agent) {
  const [lines, setLines] = useState([]);
  const [error, setError] = useState(undefined);
  useEffect(() => {
    setLines([]);
    if (!agent) return undefined;
    return followLog(`/agents/${agent}/timeline.ndjson`, (more, anew) => setLines((before) => (anew ? objects(more) : [...before, ...objects(more)]).slice(-10_000)), { onError: setError, bytes: 1 << 20 });
  }, [agent]);
  return { lines, error };
}
