// Jobs: a table with a filter, and beside it the call, its log as it grows, its result, and how to cancel it.

import { Ago, Choice, Empty, Facts, Figure, Filter, Json, Refusal, Rows, Split, State, PathLink, html, useEffect, useMemo, useState, useLoaded } from "../ui.js";
import { store as agents, useStore } from "../agents.js";
import { followLog, followValue } from "../follow.js";
import { clock, duration, oneLine, parse } from "../format.js";
import { exists, readJson, write } from "../fs.js";

const LIVE = ["queued", "running", "waiting_for_approval"];

/** The list of jobs that this browser may see. */
export function jobsFile() {
  return agents.operator ? "/meta/jobs.json" : `/agents/${[...agents.agents.keys()][0] ?? "self"}/jobs/recent.json`;
}

export function Jobs({ rest: [agentAt = "", job] }) {
  const store = useStore();
  const asked = /^\?agent=(.*)$/.exec(location.hash.slice(6))?.[1];
  const [filter, setFilter] = useState(asked ? decodeURIComponent(asked) : "");
  const [only, setOnly] = useState("");
  const told = useMemo(() => store.events.findLast?.((event) => event.kind === "job" || event.kind === "chat"), [store.version]);
  const [jobs, error, again] = useLoaded((signal) => (store.loaded ? readJson(jobsFile(), { signal }) : new Promise(() => {})), [store.loaded, told?.agent, told?.seq]);
  // Calls that only read tell no event; while something runs, the list is looked at again.
  const alive = jobs?.some((job) => LIVE.includes(job.state));
  useEffect(() => {
    const timer = setInterval(again, alive ? 2000 : 10_000);
    return () => clearInterval(timer);
  }, [alive]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const states = [...new Set((jobs ?? []).map((job) => job.state))].sort();
  const shown = (jobs ?? []).filter((job) => (!only || job.state === only) && words.every((word) => `${job.job_id} ${job.agent} ${job.service} ${job.operation} ${job.state} ${job.error?.message ?? ""}`.toLowerCase().includes(word)));
  const go = (job) => (location.hash = job ? `#/jobs/${encodeURIComponent(job.agent)}/${job.job_id}` : "#/jobs");
  const list = html`<p class="title" aria-hidden="true">Jobs</p>
    <${Filter} value=${filter} onInput=${setFilter} label="Filter jobs"><${Choice} label="State" value=${only} onChange=${setOnly} options=${[["", "all states"], ...states.map((state) => [state, state.replaceAll("_", " ")])]}/></${Filter}>
    <${Refusal} error=${error} again=${again}/>
    ${jobs && !shown.length ? html`<${Empty}>No job matches.</${Empty}>` : null}
    <${Rows} items=${shown} height=${34} label="Jobs" id=${(job) => job.job_id} selected=${job} onSelect=${(key, job) => go(job)} className="jobs" row=${(job) => html`<span class="cell state-cell"><${State} name=${job.state}/></span><span class="cell grow"><b>${job.service}</b>.${job.operation} <span class="muted">${job.agent}</span>${job.error ? html` <span class="muted">${oneLine(job.error.message, 80)}</span>` : null}</span><span class="cell muted"><${Ago} ms=${job.created_at_ms}/></span>`}/>`;
  return html`<${Split} open=${Boolean(job)} onBack=${() => go()} list=${list} detail=${job ? html`<${Job} key=${job} home=${`/agents/${agentAt}/jobs/${job}`} id=${job}/>` : html`<${Empty}>Choose a job.</${Empty}>`}/>`;
}

function Job({ home, id }) {
  const [status, setStatus] = useState(undefined);
  const [error, setError] = useState(undefined);
  const [lines, setLines] = useState([]);
  useEffect(() => followValue(`${home}/progress.json`, (text) => setStatus(parse(text)), setError), [home]);
  useEffect(() => {
    let stop = () => {};
    let gone = false;
    // A job of long ago has no log any more.
    exists(`${home}/log.txt`).then((there) => {
      if (there && !gone) stop = followLog(`${home}/log.txt`, (more, anew) => setLines((before) => (anew ? more : [...before, ...more]).slice(-2000)));
    }, () => {});
    return () => {
      gone = true;
      stop();
    };
  }, [home]);
  const [request] = useLoaded((signal) => readJson(`${home}/request.json`, { signal }), [home]);
  const live = LIVE.includes(status?.state);
  const [result] = useLoaded((signal) => (status && !live ? readJson(`${home}/result.json`, { signal }) : Promise.resolve(undefined)), [home, live, Boolean(status)]);
  const file = `${home}/progress.json`;
  const took = status?.started_at_ms ? (live ? Date.now() : status.updated_at_ms) - status.started_at_ms : undefined;
  return html`<article class="job"><header><h2>${status ? `${status.service}.${status.operation}` : id}</h2>${status ? html`<${State} name=${status.state}/>` : null}<span class="grow"></span>${live ? html`<button class="danger" onClick=${() => write(`${home}/control/cancel`, "cancel\n").catch(setError)}>Cancel</button>` : null}</header>
    <${Refusal} error=${error}/>
    ${status ? html`<${Facts} rows=${[
      ["job", html`<${PathLink} path=${home}>${id}</${PathLink}>`],
      ["agent", html`<a href=${`#/agents/${encodeURIComponent(status.agent)}`}>${status.agent}</a>`],
      ["state", html`<${Figure} file=${file} pointer="state" value=${status.state}/>`],
      ["attempt", html`<${Figure} file=${file} pointer="attempt" value=${status.attempt}/>`],
      ["created", html`<${Figure} file=${file} pointer="created_at_ms" value=${status.created_at_ms} as=${clock}/>`],
      ["ran", duration(took)],
    ]}/>` : null}
    ${status?.error ? html`<${Refusal} error=${status.error}/>` : null}
    ${status?.progress ? html`<h3>Progress</h3><${Json} value=${status.progress}/>` : null}
    ${request ? html`<h3>Call</h3><${Json} value=${request.arguments}/>` : null}
    ${lines.length ? html`<h3>Log</h3><${LogTail} lines=${lines}/>` : null}
    ${result?.result !== undefined && result?.result !== null ? html`<h3>Result</h3><${Json} value=${result.result}/>` : null}
  </article>`;
}

/** The end of a log, which stays at its end as long as nobody scrolls up. */
export function LogTail({ lines }) {
  return html`<div class="log"><${Rows} items=${lines} height=${20} label="Log" stick=${true} row=${(line) => html`<code>${line}</code>`}/></div>`;
}
