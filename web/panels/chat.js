// Conversation: the turns of one agent with their steps, and the one that runs as it happens.

import { Ago, Empty, Figure, Json, PathLink, Refusal, Rows, Split, State, html, useEffect, useLoaded, useMemo, useRef, useState } from "../ui.js";
import { byNeed, statusFile, useStore } from "../agents.js";
import { followLog, followValue } from "../follow.js";
import { count, duration, money, objects, oneLine, parse } from "../format.js";
import { read, readJson, write } from "../fs.js";
import { Markdown } from "../markdown.js";
import { cards, growingReply, growingThought } from "../steps.js";
import { Composer } from "./composer.js";

const KEPT = 200;

export function Chat({ rest: [chosen] }) {
  const store = useStore();
  const agents = useMemo(() => byNeed(), [store.version]);
  const agent = store.agents.get(chosen);
  const go = (id) => (location.hash = id ? `#/chat/${encodeURIComponent(id)}` : "#/chat");
  const list = html`<p class="title" aria-hidden="true">Conversation</p><${Rows} items=${agents} height=${44} label="Conversations" id=${(agent) => agent.agent_id} selected=${chosen} onSelect=${go} className="people" row=${(agent) => html`<span class="cell grow"><b>${agent.agent_id}</b><br/><span class="muted">${oneLine(agent.last, 60) || "–"}</span></span><span class="cell"><${State} name=${agent.attention}/></span>`}/>`;
  return html`<${Split} narrow=${true} open=${Boolean(agent)} onBack=${() => go("")} list=${list} detail=${agent ? html`<${Conversation} key=${chosen} agent=${agent}/>` : html`<${Empty}>Choose an agent to talk to.</${Empty}>`}/>`;
}

function Conversation({ agent }) {
  const id = agent.agent_id;
  const home = `/agents/${id}`;
  const [turns, setTurns] = useState(undefined);
  const [status, setStatus] = useState(undefined);
  const [sent, setSent] = useState([]);
  const [error, setError] = useState(undefined);
  const end = useRef(null);
  const box = useRef(null);
  const near = useRef(true);
  useEffect(
    () =>
      followLog(
        `${home}/chat/history.ndjson`,
        (lines, anew) => setTurns((before) => [...(anew ? [] : (before ?? [])), ...objects(lines)].slice(-KEPT)),
        { onError: setError },
      ),
    [home],
  );
  useEffect(() => followValue(`${home}/chat/status.json`, (text) => setStatus(parse(text)), setError), [home]);
  const running = ["running", "queued"].includes(status?.state) && !turns?.some((turn) => turn.job_id === status.job_id) ? status : undefined;
  // What was sent here and is neither running nor over waits in the queue.
  const waiting = sent.filter(({ job }) => job !== running?.job_id && !turns?.some((turn) => turn.job_id === job));
  useEffect(() => {
    if (near.current) box.current.scrollTop = box.current.scrollHeight;
  });
  return html`<article class="conversation">
    <header><h2><a href=${`#/agents/${encodeURIComponent(id)}`}>${id}</a></h2><${State} name=${agent.attention}/><span class="grow"></span>
      <span class="muted">${agent.model} · <${Figure} file=${statusFile(id)} pointer="spent.money" value=${status?.spent?.money ?? agent.spent?.money} as=${money} label="spent"/></span>
      ${running?.job_id ? html`<button onClick=${() => write(`${home}/jobs/${running.job_id}/control/cancel`, "cancel\n").catch(setError)}>Cancel</button>` : null}</header>
    <div class="turns" ref=${box} tabindex="0" role="log" aria-label=${`Conversation with ${id}`} onScroll=${() => {
      const { scrollTop, clientHeight, scrollHeight } = box.current;
      near.current = scrollTop + clientHeight > scrollHeight - 80;
    }}>
      ${turns?.length === 0 && !running ? html`<${Empty}>Nothing was said yet.</${Empty}>` : null}
      ${(turns ?? []).map((turn) => html`<${Turn} key=${turn.job_id} turn=${turn} home=${home}/>`)}
      ${running ? html`<${Running} key=${running.job_id} status=${running} home=${home}/>` : null}
      ${waiting.map(({ job, text }) => html`<section class="turn" key=${job}><div class="mine"><${Markdown} text=${text}/></div><p class="muted small">waits for its turn</p></section>`)}
      <${Refusal} error=${error}/>
      <div ref=${end}></div>
    </div>
    <${Composer} agent=${id} onSent=${(job, text) => {
      near.current = true;
      setSent((before) => [...before, { job, text }].slice(-20));
    }}/>
  </article>`;
}

function source(turn) {
  if (typeof turn.source === "string") return null;
  const [kind, what] = Object.entries(turn.source)[0];
  return html`<p class="muted small">${kind === "wake" ? "woken by" : "a task of"} ${what}</p>`;
}

function Turn({ turn, home }) {
  const [open, setOpen] = useState(false);
  const base = `${home}/`;
  return html`<section class="turn">
    <div class="mine">${source(turn)}<${Markdown} text=${turn.input} base=${base}/></div>
    <details class="steps" open=${open} onToggle=${(event) => setOpen(event.target.open)}><summary>${turn.spent?.rounds ?? 0} ${turn.spent?.rounds === 1 ? "round" : "rounds"} · ${count((turn.spent?.input ?? 0) + (turn.spent?.output ?? 0))} tokens · ${duration(turn.spent?.ms)}${turn.spent?.money ? ` · ${money(turn.spent.money)}` : ""}</summary>${open ? html`<${Steps} home=${home} job=${turn.job_id}/>` : null}</details>
    ${turn.reply === null || turn.reply === undefined ? null : html`<div class="theirs"><${Markdown} text=${turn.reply} base=${base}/></div>`}
    ${turn.error ? html`<${Refusal} error=${turn.error}/>` : null}
    <p class="muted small"><${Ago} ms=${turn.ts_ms}/> · <a href=${`#/jobs/${encodeURIComponent(home.slice(8))}/${turn.job_id}`}>job</a></p>
  </section>`;
}

/** The turn that runs: its steps as they are made, and the thought and the reply as they grow. */
function Running({ status, home }) {
  const [records, setRecords] = useState([]);
  const [latest, setLatest] = useState("");
  const [thinking, setThinking] = useState(undefined);
  const job = status.job_id;
  // What waits for its turn is known by its request.
  const [request] = useLoaded((signal) => (status.input ? Promise.resolve(undefined) : readJson(`${home}/jobs/${job}/request.json`, { signal })), [job, Boolean(status.input)]);
  useEffect(() => {
    let gone = false;
    let again = null;
    const look = () => {
      clearTimeout(again);
      again = setTimeout(() => read(`${home}/jobs/${job}/transcript.ndjson`).then((text) => gone || setRecords(objects(text.split("\n"))), () => {}), 60);
    };
    const stops = [
      followLog(`${home}/jobs/${job}/log.txt`, look),
      followValue(`${home}/thoughts/latest.txt`, setLatest),
      followValue(`${home}/thoughts/status.json`, (text) => setThinking(parse(text))),
    ];
    return () => {
      gone = true;
      clearTimeout(again);
      stops.forEach((stop) => stop());
    };
  }, [job]);
  const said = records.filter((record) => record.kind === "said").length;
  // The thought of a round that is in the steps already is not shown twice.
  const live = thinking?.job_id === job && thinking.state === "thinking" && thinking.round > said ? latest : "";
  const reply = growingReply(live);
  const thought = reply === undefined ? growingThought(live) : "";
  return html`<section class="turn running" aria-busy="true">
    <div class="mine"><${Markdown} text=${status.input ?? request?.arguments?.input ?? ""} base=${`${home}/`}/></div>
    <${Cards} cards=${cards(records)} home=${home}/>
    ${status.said ? html`<div class="theirs"><${Markdown} text=${status.said} base=${`${home}/`}/></div>` : null}
    ${thought ? html`<details class="thought" open><summary>thinks</summary><p class="growing" data-growing>${thought}</p></details>` : null}
    ${reply === undefined ? null : html`<div class="theirs growing" data-growing><${Markdown} text=${reply} base=${`${home}/`}/></div>`}
    <p class="muted small"><span class="pulse" aria-hidden="true"></span>${status.state === "queued" ? "waits for its turn" : live ? "answers" : "works"}</p>
  </section>`;
}

function Steps({ home, job }) {
  const [text, setText] = useState(undefined);
  const [error, setError] = useState(undefined);
  useEffect(() => {
    read(`${home}/jobs/${job}/transcript.ndjson`).then(setText, setError);
  }, [job]);
  if (error) return html`<${Refusal} error=${error}/>`;
  if (text === undefined) return html`<p class="muted">…</p>`;
  const all = cards(objects(text.split("\n")));
  return all.length ? html`<${Cards} cards=${all} home=${home}/>` : html`<p class="muted">The steps of this turn are not kept any more.</p>`;
}

function Cards({ cards, home }) {
  return cards.map((card) => {
    if (card.type === "thought") return html`<details class="thought"><summary>thought · ${duration(card.ms)}</summary><p>${card.text}</p></details>`;
    if (card.type === "text") return html`<details class="thought"><summary>said · ${duration(card.ms)}</summary><p>${card.text}</p></details>`;
    if (card.type === "mail") return html`<p class="muted small">${card.mails.length} messages came</p>`;
    if (card.type === "failed") return html`<${Refusal} error=${card.error}/>`;
    return html`<${Call} card=${card} home=${home}/>`;
  });
}

/** One call of a tool: what, where, with what, and what came of it. */
function Call({ card, home }) {
  const { call, result } = card;
  const given = call.arguments ?? {};
  const path = typeof given.path === "string" ? given.path : "";
  const shown = path.replace(/^\/?agents\/self(?=\/)/, home).replace(/^(?!\/)/, "/");
  const failed = result?.error;
  const state = result === undefined ? "running" : failed ? "failed" : "done";
  const { path: _, content, ...others } = given;
  const extra = Object.keys(others).length ? others : undefined;
  return html`<details class=${`call ${state}`}><summary><${State} name=${state}/><b>${call.name}</b> <span class="path">${path}</span><span class="muted">${duration(card.ms)}</span></summary>
    <div class="inside">
      ${path ? html`<p><${PathLink} path=${shown}/>${result?.job_id ? html` · <a href=${`#/jobs/${encodeURIComponent(home.slice(8))}/${result.job_id}`}>job ${result.job_id.slice(0, 12)}…</a>` : null}</p>` : null}
      ${content === undefined ? null : html`<h3>Content</h3><${Json} value=${pretty(content)}/>`}
      ${extra ? html`<h3>Arguments</h3><${Json} value=${extra}/>` : null}
      ${failed ? html`<${Refusal} error=${failed}/>` : result === undefined ? null : html`<h3>Result</h3><${Json} value=${typeof result.content === "string" ? pretty(result.content) : result}/>`}
    </div></details>`;
}

function pretty(text) {
  if (typeof text !== "string") return text;
  const value = /^\s*[{[]/.test(text) ? parse(text) : undefined;
  return value === undefined ? text : value;
}
