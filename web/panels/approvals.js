// Approvals: what waits for a decision, with everything that it would do; and what was decided.

import { Ago, Empty, Facts, Figure, Json, PathLink, Refusal, Rows, Split, State, html, useEffect, useMemo, useNow, useState, useLoaded } from "../ui.js";
import { useStore } from "../agents.js";
import { followValue } from "../follow.js";
import { clock, duration, oneLine, parse } from "../format.js";
import { list, readJson, write } from "../fs.js";

const STATUS = "/approvals/status.json";

export function Approvals({ rest: [chosen] }) {
  useStore();
  const [status, setStatus] = useState(undefined);
  const [error, setError] = useState(undefined);
  useEffect(() => followValue(STATUS, (text) => setStatus(parse(text)), setError), []);
  const waiting = status?.requests ?? [];
  const [all] = useLoaded((signal) => list("/approvals", { max: 2000, signal }), [status?.waiting]);
  const items = useMemo(() => {
    const known = new Set(waiting.map((request) => request.id));
    const past = (all?.entries ?? []).filter((entry) => entry.type === "directory" && !known.has(entry.name)).reverse();
    return [...waiting, ...past.map((entry) => ({ id: entry.name, past: true, at_ms: entry.modified_ms }))];
  }, [status, all]);
  const go = (id) => (location.hash = id ? `#/approvals/${encodeURIComponent(id)}` : "#/approvals");
  const left = html`<p class="title" aria-hidden="true">Approvals</p><${Refusal} error=${error}/>
    <p class="muted small" role="status">${status ? html`<${Figure} file=${STATUS} pointer="waiting" value=${status.waiting}/> waiting` : ""}</p>
    ${status && !items.length ? html`<${Empty}>Nothing waits for you.</${Empty}>` : null}
    <${Rows} items=${items} height=${52} label="Requests" id=${(item) => item.id} selected=${chosen} onSelect=${go} row=${(item) => html`<div class="need"><span class="who"><b>${item.agent ?? item.id}</b> ${item.past ? html`<span class="tag">decided</span>` : html`<${State} name="approval"/>`}</span><span class="words">${oneLine(item.summary ?? "")}</span><span class="sums"><${Ago} ms=${item.created_at_ms ?? item.at_ms}/></span></div>`}/>`;
  return html`<${Split} open=${Boolean(chosen)} onBack=${() => go("")} list=${left} detail=${chosen ? html`<${Request} key=${chosen} id=${chosen}/>` : html`<${Empty}>Choose a request.</${Empty}>`}/>`;
}

function Request({ id }) {
  const home = `/approvals/${id}`;
  const file = `${home}/request.json`;
  const [request, setRequest] = useState(undefined);
  const [error, setError] = useState(undefined);
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => followValue(file, (text) => setRequest(parse(text)), setError), [file]);
  const open = request?.state === "waiting" || request?.state === "pending" || request?.state === "undecided";
  const settled = request && !open;
  const [outcome] = useLoaded((signal) => (settled ? readJson(`${home}/status.json`, { signal }) : Promise.resolve(undefined)), [id, settled]);
  const now = useNow(1000);
  const decide = async (answer) => {
    setBusy(true);
    setError(undefined);
    // The answer counts only for what is shown here.
    await write(`${home}/decision`, `${JSON.stringify({ decision: answer, sha256: request.subject_sha256 })}\n`).catch(setError);
    setBusy(false);
  };
  if (!request) return html`<${Refusal} error=${error}/>`;
  const always = request.offers?.some((offer) => offer.answer === "allow always");
  return html`<article class="approval"><header><h2>${request.summary}</h2></header>
    <${Refusal} error=${error}/>
    <${Facts} rows=${[
      ["agent", html`<a href=${`#/chat/${encodeURIComponent(request.agent)}`}>${request.agent}</a>`],
      ["state", html`<${Figure} file=${file} pointer="state" value=${request.state}/>`],
      ["kind", request.kind],
      ["asked", html`<${Figure} file=${file} pointer="created_at_ms" value=${request.created_at_ms} as=${clock}/>`],
      open ? ["ends in", duration(Math.max(0, request.expires_at_ms - now))] : null,
      request.jobs?.length ? ["jobs", request.jobs.map((job) => html`<a href=${`#/jobs/${encodeURIComponent(request.agent)}/${job}`}>${job.slice(0, 12)}…</a> `)] : null,
    ]}/>
    ${request.risk?.length ? html`<h3>Risk</h3><ul class="risks">${request.risk.map((fact) => html`<li>${fact}</li>`)}</ul>` : null}
    ${request.stated_reason ? html`<h3>What the agent says</h3><div class="said">${request.stated_reason}</div>` : null}
    <h3>What would be done</h3>${request.subject?.path ? html`<p><${PathLink} path=${request.subject.path}/></p>` : null}<${Json} value=${request.subject}/>
    ${request.diff ? html`<p><${PathLink} path=${request.diff}>the diff</${PathLink}></p>` : null}
    ${open ? html`<form class="decision" onSubmit=${(event) => event.preventDefault()}>
      <div class="field"><label for="deny-reason">Reason, if you deny it</label><input id="deny-reason" type="text" value=${reason} onInput=${(event) => setReason(event.target.value)}/></div>
      <div class="actions"><button type="button" class="primary" disabled=${busy} onClick=${() => decide("allow")}>Allow once</button>
      <button type="button" disabled=${busy} onClick=${() => decide("allow for 10m")}>Allow for 10 minutes</button>
      ${always ? html`<button type="button" disabled=${busy} onClick=${() => decide("allow always")}>Allow always</button>` : null}
      <button type="button" class="danger" disabled=${busy} onClick=${() => decide(reason.trim() ? `deny: ${reason.trim()}` : "deny")}>Deny</button></div></form>` : null}
    ${outcome ? html`<p class="verdict">${outcome.state}${outcome.answer ? html`: ${outcome.answer}` : null}${outcome.decided_at_ms ? html` · <${Ago} ms=${outcome.decided_at_ms}/>` : null}</p>` : null}
    <h3>The rule that asks</h3><${Json} value=${request.matched_rule}/>
    ${request.offers ? html`<h3>What each answer writes</h3><${Json} value=${request.offers}/>` : null}
  </article>`;
}
