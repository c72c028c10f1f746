// Who needs me: all agents, those that wait for a person first.

import { Ago, Empty, Figure, Filter, Meter, Refusal, Rows, Split, State, html, useMemo, useState } from "../ui.js";
import { ORDER, byNeed, statusFile, useStore } from "../agents.js";
import { count, money, oneLine, percent } from "../format.js";
import { AgentCard } from "./agents.js";

export const ABOUT = {
  approval: "waits for your approval",
  blocked: "cannot go on: its last turn failed, or turns wait while it is paused",
  stalled: "works on one step for more than twice its median",
  working: "works",
  idle: "has had no turn yet",
  done: "its last turn ended with a reply",
};

export function Needs({ rest: [chosen] }) {
  const store = useStore();
  const [filter, setFilter] = useState("");
  const [only, setOnly] = useState("");
  const agents = useMemo(() => byNeed(), [store.version]);
  const counts = useMemo(() => Object.fromEntries(ORDER.map((word) => [word, agents.filter((agent) => agent.attention === word).length])), [agents]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = agents.filter((agent) => (!only || agent.attention === only) && words.every((word) => `${agent.agent_id} ${agent.name} ${agent.model} ${agent.last ?? ""}`.toLowerCase().includes(word)));
  const agent = store.agents.get(chosen);
  const go = (id) => (location.hash = id ? `#/needs/${encodeURIComponent(id)}` : "#/needs");
  const list = html`
    <p class="title" aria-hidden="true">Who needs me</p>
    <div class="chips" role="group" aria-label="States">${ORDER.filter((word) => counts[word]).map((word) => html`<button class=${`chip state-${word}`} aria-pressed=${only === word ? "true" : "false"} title=${ABOUT[word]} onClick=${() => setOnly(only === word ? "" : word)}><b>${counts[word]}</b> ${word}</button>`)}</div>
    <${Filter} value=${filter} onInput=${setFilter} label="Filter agents"/>
    <${Refusal} error=${store.error}/>
    ${store.loaded && !shown.length ? html`<${Empty}>${agents.length ? "No agent matches." : "There is no agent that you may see."}</${Empty}>` : null}
    <${Rows} items=${shown} height=${62} label="Agents by need" id=${(agent) => agent.agent_id} selected=${chosen} onSelect=${go} onOpen=${(agent) => chosen === agent.agent_id && (location.hash = `#/chat/${encodeURIComponent(agent.agent_id)}`)} className="agents" row=${(agent) => html`<${NeedRow} agent=${agent}/>`}/>`;
  return html`<${Split} open=${Boolean(agent)} onBack=${() => go("")} list=${list} detail=${agent ? html`<${AgentCard} key=${agent.agent_id} agent=${agent}/>` : html`<${Hint}/>`}/>`;
}

function NeedRow({ agent }) {
  const file = statusFile(agent.agent_id);
  const used = agent.context?.tokens && agent.context.window ? agent.context.tokens / agent.context.window : undefined;
  return html`<div class="need">
    <span class="who"><b>${agent.agent_id}</b> <${State} name=${agent.attention}/></span>
    <span class="words">${oneLine(agent.attention === "working" ? (agent.said ?? agent.input ?? agent.last) : agent.last) || html`<span class="muted">${oneLine(agent.about) || "nothing said yet"}</span>`}</span>
    <span class="sums"><${Figure} file=${file} pointer="spent.money" value=${agent.spent?.money} as=${money} label="spent"/>
      ${used === undefined ? null : html`<span class="context"><${Meter} share=${used} label=${`context ${percent(used)}`}/></span>`}
      <${Ago} ms=${agent.updated_at_ms}/></span>
  </div>`;
}

function Hint() {
  return html`<div class="hintpane"><p>Choose an agent to see what it said and to answer it; press <kbd>Enter</kbd> twice for the conversation.</p><dl class="legend">${ORDER.map((word) => html`<div><dt><${State} name=${word}/></dt><dd>${ABOUT[word]}</dd></div>`)}</dl></div>`;
}

export { count };
