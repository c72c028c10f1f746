// Audit: every decision that matters, as the chained log has it.

import { Choice, Empty, Filter, Json, Refusal, Rows, Split, html, useEffect, useMemo, useState } from "../ui.js";
import { followLog } from "../follow.js";
import { clock, objects, oneLine } from "../format.js";

export function Audit() {
  const [lines, setLines] = useState([]);
  const [cut, setCut] = useState(false);
  const [error, setError] = useState(undefined);
  const [filter, setFilter] = useState("");
  const [kind, setKind] = useState("");
  const [chosen, setChosen] = useState(undefined);
  useEffect(
    () =>
      followLog(
        "/meta/audit.ndjson",
        (more, anew, cut) => {
          setLines((before) => (anew ? objects(more) : [...before, ...objects(more)]).slice(-10_000));
          if (anew) setCut(cut);
        },
        { bytes: 1 << 20, onError: setError },
      ),
    [],
  );
  const kinds = useMemo(() => [...new Set(lines.map((line) => line.kind))].sort(), [lines]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = useMemo(() => lines.filter((line) => (!kind || line.kind === kind) && (!words.length || words.every((word) => JSON.stringify(line).toLowerCase().includes(word)))), [lines, kind, filter]);
  const line = shown.find((line) => line.seq === chosen);
  const list = html`<p class="title" aria-hidden="true">Audit</p><${Filter} value=${filter} onInput=${setFilter} label="Filter the audit"><${Choice} label="Kind" value=${kind} onChange=${setKind} options=${[["", "all kinds"], ...kinds]}/></${Filter}>
    <${Refusal} error=${error}/><p class="muted small" role="status">${shown.length} of ${lines.length}${cut ? ", the newest" : ""}; <code>acheron audit verify</code> checks the chain</p>
    <${Rows} items=${shown} height=${28} label="Audit lines" stick=${true} id=${(line) => line.seq} selected=${chosen} onSelect=${setChosen} className="events" row=${(line) => html`<span class="cell time">${clock(line.at_ms)}</span><span class=${`cell kind kind-${line.kind}`}>${line.kind}</span><span class="cell who">${line.principal ?? ""}</span><span class="cell grow">${summary(line)}</span>`}/>`;
  return html`<${Split} open=${Boolean(line)} onBack=${() => setChosen(undefined)} list=${list} detail=${line ? html`<article><h2>${line.kind} <span class="muted">#${line.seq}</span></h2><${Json} value=${line}/></article>` : html`<${Empty}>Choose a line.</${Empty}>`}/>`;
}

function summary(line) {
  const { action, path, reason, job, service, operation, count, version, agent, model, outcome } = line;
  const parts = [agent, model, outcome, service && operation ? `${service}.${operation}` : null, action, path, reason, job, version, count ? `${count} times` : null];
  return oneLine(parts.filter(Boolean).join(" · "));
}
