// Agents: what each is, has spent, and is doing; pause, resume, stop.

import { Ago, Empty, Facts, Figure, Filter, Meter, PathLink, Refusal, Rows, Split, State, html, useMemo, useState } from "../ui.js";
import { statusFile, useStore } from "../agents.js";
import { count, duration, money, oneLine, percent } from "../format.js";
import { command, write } from "../fs.js";
import { Markdown } from "../markdown.js";
import { Composer } from "./composer.js";

export function Agents({ rest: [chosen] }) {
  const store = useStore();
  const [filter, setFilter] = useState("");
  const agents = useMemo(() => [...store.agents.values()].sort((a, b) => a.agent_id.localeCompare(b.agent_id)), [store.version]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = agents.filter((agent) => words.every((word) => `${agent.agent_id} ${agent.name} ${agent.model} ${agent.state}`.toLowerCase().includes(word)));
  const agent = store.agents.get(chosen);
  const go = (id) => (location.hash = id ? `#/agents/${encodeURIComponent(id)}` : "#/agents");
  const list = html`<p class="title" aria-hidden="true">Agents</p><${Filter} value=${filter} onInput=${setFilter} label="Filter agents"/>
    ${store.loaded && !shown.length ? html`<${Empty}>No agent matches.</${Empty}>` : null}
    <${Rows} items=${shown} height=${40} label="Agents" id=${(agent) => agent.agent_id} selected=${chosen} onSelect=${go} className="table-agents" row=${(agent) => {
      const file = statusFile(agent.agent_id);
      return html`<span class="cell grow"><b>${agent.agent_id}</b> <span class="muted">${oneLine(agent.about, 80)}</span></span><span class="cell"><${State} name=${agent.state}/></span><span class="cell muted wide-only">${agent.model}</span><span class="cell number"><${Figure} file=${file} pointer="spent.money" value=${agent.spent?.money} as=${money}/></span>`;
    }}/>`;
  return html`<${Split} open=${Boolean(agent)} onBack=${() => go("")} list=${list} detail=${agent ? html`<${AgentCard} key=${agent.agent_id} agent=${agent}/>` : html`<${Empty}>Choose an agent.</${Empty}>`}/>`;
}

/** One agent with its figures, its last words, and a line to answer it. */
export function AgentCard({ agent }) {
  const [error, setError] = useState(undefined);
  const id = agent.agent_id;
  const file = statusFile(id);
  const part = encodeURIComponent(id);
  const act = async (work) => {
    setError(undefined);
    await work().catch(setError);
  };
  const manage = (word) => act(() => command(`/agents/self/agents/control/${word}.json`, { agent_id: id }, { wait: 30 }));
  const busy = ["running", "queued"].includes(agent.state);
  const limits = agent.limits?.agent ?? {};
  const used = agent.context?.tokens && agent.context.window ? agent.context.tokens / agent.context.window : undefined;
  return html`<article class="agent">
    <header><h2>${id}</h2><${State} name=${agent.attention}/><span class="grow"></span>
      <a class="button" href=${`#/chat/${part}`}>Conversation</a>
      ${busy && agent.job_id ? html`<button onClick=${() => act(() => write(`/agents/${id}/jobs/${agent.job_id}/control/cancel`, "cancel\n"))}>Cancel turn</button>` : null}
      ${agent.state === "paused" ? html`<button onClick=${() => manage("resume")}>Resume</button>` : html`<button onClick=${() => manage("pause")}>Pause</button>`}</header>
    ${agent.about ? html`<p class="muted">${agent.about}</p>` : null}
    <${Refusal} error=${error}/>
    <${Facts} rows=${[
      ["state", html`<${Figure} file=${file} pointer="state" value=${agent.state} as=${(word) => html`<${State} name=${word}/>`}/>`],
      ["model", html`<${Figure} file=${file} pointer="model" value=${agent.model}/>`],
      ["spent", html`<${Figure} file=${file} pointer="spent.money" value=${agent.spent?.money} as=${money}/>${limits.money ? html` of <${Figure} file=${file} pointer="limits.agent.money" value=${limits.money} as=${money}/>` : null}`],
      ["tokens in, out", html`<${Figure} file=${file} pointer="spent.input" value=${agent.spent?.input} as=${count}/>, <${Figure} file=${file} pointer="spent.output" value=${agent.spent?.output} as=${count}/>${limits.tokens ? html` of <${Figure} file=${file} pointer="limits.agent.tokens" value=${limits.tokens} as=${count}/>` : null}`],
      ["rounds", html`<${Figure} file=${file} pointer="spent.rounds" value=${agent.spent?.rounds} as=${count}/>`],
      ["work", html`<${Figure} file=${file} pointer="spent.ms" value=${agent.spent?.ms} as=${duration}/>`],
      ["context", used === undefined ? "–" : html`<${Meter} share=${used} label=${`context ${percent(used)}`}/> <${Figure} file=${file} pointer="context.tokens" value=${agent.context.tokens} as=${count}/> of <${Figure} file=${file} pointer="context.window" value=${agent.context.window} as=${count}/>`],
      ["median step", html`<${Figure} file=${file} pointer="step.median_ms" value=${agent.step?.median_ms} as=${duration}/>`],
      ["queued turns", html`<${Figure} file=${file} pointer="queued" value=${agent.queued} as=${count}/>`],
      ["last change", html`<${Ago} ms=${agent.updated_at_ms}/>`],
    ]}/>
    ${agent.error ? html`<${Refusal} error=${agent.error}/>` : null}
    ${busy && agent.input ? html`<section><h3>Asked</h3><div class="said"><${Markdown} text=${agent.input} base=${`/agents/${id}/`}/></div></section>` : null}
    ${agent.last ? html`<section><h3>Last words</h3><div class="said"><${Markdown} text=${agent.last} base=${`/agents/${id}/`}/></div></section>` : null}
    <${Composer} agent=${id}/>
    <p class="links"><a href=${`#/jobs?agent=${part}`}>jobs</a> · <a href=${`#/memory/${part}`}>memory</a> · <a href=${`#/events?agent=${part}`}>events</a> · <${PathLink} path=${`/agents/${id}`}>files</${PathLink}></p>
  </article>`;
}
