// Views: what agents changed in their working copies, by file; comments on lines, promote and discard by file.

import { Empty, Facts, Figure, PathLink, Refusal, Rows, Split, State, html, useMemo, useState, useLoaded } from "../ui.js";
import { useStore } from "../agents.js";
import { patch } from "../diff.js";
import { bytes, count } from "../format.js";
import { command, list, read, readJson } from "../fs.js";

/** All views: `{project, view, home}`. */
async function views(signal) {
  const { entries: projects } = await list("/projects", { signal });
  const found = [];
  for (const { name: project } of projects.filter((entry) => entry.type === "directory")) {
    const home = `/projects/${project}`;
    const { entries } = await list(home, { signal });
    if (!entries.some((entry) => entry.name === "views")) continue;
    const { entries: all } = await list(`${home}/views`, { signal });
    for (const { name: view, type } of all) {
      if (type === "directory" && view !== "control") found.push({ project, view, home: `${home}/views/${view}` });
    }
  }
  return found;
}

export function Views({ rest: [project, view] }) {
  const store = useStore();
  const told = useMemo(() => store.events.findLast?.((event) => event.path?.startsWith("/projects/")), [store.version]);
  const [all, error, again] = useLoaded(views, [told?.agent, told?.seq]);
  const chosen = all?.find((one) => one.project === project && one.view === view);
  const go = (one) => (location.hash = one ? `#/views/${encodeURIComponent(one.project)}/${encodeURIComponent(one.view)}` : "#/views");
  const left = html`<p class="title" aria-hidden="true">Views</p><${Refusal} error=${error} again=${again}/>
    ${all && !all.length ? html`<${Empty}>No agent works in a view. <code>"view": "own"</code> in its entry of the mountspec gives it one.</${Empty}>` : null}
    <${Rows} items=${all ?? []} height=${40} label="Views" id=${(one) => one.home} selected=${chosen?.home} onSelect=${(key, one) => go(one)} row=${(one) => html`<span class="cell grow"><b>${one.view}</b> <span class="muted">of ${one.project}</span></span>`}/>`;
  return html`<${Split} narrow=${true} open=${Boolean(chosen)} onBack=${() => go()} list=${left} detail=${chosen ? html`<${View} key=${chosen.home} home=${chosen.home} name=${chosen.view} told=${told?.seq} onGone=${again}/>` : html`<${Empty}>Choose a view.</${Empty}>`}/>`;
}

function View({ home, name, told, onGone }) {
  const [turn, setTurn] = useState(0);
  const [refused, setRefused] = useState(undefined);
  const [said, setSaid] = useState("");
  const [sure, setSure] = useState(false);
  const [changes, error] = useLoaded((signal) => readJson(`${home}/changes.json`, { signal }), [home, told, turn]);
  const [text] = useLoaded((signal) => read(`${home}/diff.patch`, { signal }), [home, told, turn]);
  const files = useMemo(() => (text ? patch(text) : []), [text]);
  const act = async (word, given, tell) => {
    setRefused(undefined);
    try {
      const answer = await command(`${home}/control/${word}.json`, given, { wait: 120 });
      if (answer.error) throw answer.error;
      setSaid(tell);
    } catch (error) {
      setRefused(error);
    }
    setTurn((turn) => turn + 1);
    if (word === "discard" && !given.paths) onGone();
  };
  const file = `${home}/changes.json`;
  const listed = changes?.changes ?? [];
  const counts = changes?.counts ?? {};
  return html`<article class="view"><header><h2>${name}</h2><span class="grow"></span>
      <button class="primary" disabled=${!listed.length} onClick=${() => act("promote", {}, "Everything that nothing holds back was promoted.")}>Promote all</button>
      <button onClick=${() => act("undo", {}, "The last promote was undone.")}>Undo promote</button>
      <button onClick=${() => act("rebase", {}, "The view has the project as it is now.")}>Rebase</button>
      ${sure ? html`<button class="danger" onClick=${() => act("discard", {}, "")}>Yes, throw the view away</button>` : html`<button class="danger" onClick=${() => setSure(true)}>Discard all</button>`}</header>
    <${Refusal} error=${error ?? refused}/>
    <p role="status" class="muted">${said}</p>
    ${changes ? html`<${Facts} rows=${[
      changes.agent ? ["agent", html`<a href=${`#/chat/${encodeURIComponent(changes.agent)}`}>${changes.agent}</a>`] : null,
      ...Object.keys(counts).map((kind) => [kind, html`<${Figure} file=${file} pointer=${`counts.${kind}`} value=${counts[kind]} as=${count}/>`]),
      ["files", html`<${PathLink} path=${`${home}/fs`}>fs</${PathLink}>, <${PathLink} path=${`${home}/diff.patch`}>diff.patch</${PathLink}>`],
    ]}/>` : null}
    ${changes && !listed.length ? html`<${Empty}>Nothing was changed.</${Empty}>` : null}
    ${listed.map((change) => html`<${Change} key=${change.path} change=${change} patch=${files.find((file) => file.path === change.path)} act=${act}/>`)}
    ${changes?.ignored?.length ? html`<p class="muted small">Ignored: ${changes.ignored.map((one) => `${one.path} (${one.files} files, ${bytes(one.bytes)})`).join(", ")}</p>` : null}
    ${changes?.git?.length ? html`<p class="muted small">Inside of git: ${changes.git.map((one) => `${one.path} (${one.files})`).join(", ")}</p>` : null}
  </article>`;
}

function Change({ change, patch, act }) {
  const [line, setLine] = useState(undefined);
  const one = { paths: [change.path] };
  return html`<details class="patch" open=${Boolean(patch) && patch.added + patch.removed < 200}><summary><${State} name=${change.what} mark=${{ removed: "−", added: "+", renamed: "→" }[change.what] ?? "~"}/><span class="path grow">${change.from ? `${change.from} → ` : ""}${change.path}</span>${change.held ? html`<span class="tag" title=${change.held}>held back</span>` : null}${change.conflict ? html`<span class="tag">conflict</span>` : null}${patch ? html`<span class="plus">+${patch.added}</span><span class="minus">−${patch.removed}</span>` : null}</summary>
    <div class="actions inside"><button onClick=${() => act("promote", one, `${change.path} was promoted.`)}>Promote</button><button class="danger" onClick=${() => act("discard", one, `${change.path} is as in the project again.`)}>Discard</button><button onClick=${() => setLine(line === 0 ? undefined : 0)}>Comment</button></div>
    ${change.held ? html`<p class="muted small inside">${change.held}</p>` : null}
    ${line === 0 ? html`<${Comment} act=${act} path=${change.path} onDone=${() => setLine(undefined)}/>` : null}
    ${patch?.binary ? html`<p class="muted inside">Not a text.</p>` : null}
    ${patch?.hunks.map((hunk) => html`<table class="hunk"><tbody><tr class="head"><td></td><td>${hunk.head}</td></tr>${hunk.lines.map((row) => html`<tr class=${row.mark === "+" ? "come" : row.mark === "-" ? "gone" : ""}><td>${row.mark === "-" || row.mark === "\\" ? row.line : html`<button title="Comment on this line" aria-label=${`Comment on line ${row.line}`} onClick=${() => setLine(line === row.line ? undefined : row.line)}>${row.line}</button>`}</td><td>${row.mark}${row.text}</td></tr>${line && line === row.line && row.mark !== "-" ? html`<tr><td></td><td><${Comment} act=${act} path=${change.path} line=${line} onDone=${() => setLine(undefined)}/></td></tr>` : null}`)}</tbody></table>`)}
  </details>`;
}

/** A remark that goes to the agent. */
function Comment({ act, path, line, onDone }) {
  const [text, setText] = useState("");
  const id = `comment-${line ?? "file"}`;
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    await act("comment", line ? { text, path, line } : { text, path }, "The comment was sent to the agent.");
    onDone();
  };
  return html`<form class="composer" onSubmit=${send}><label class="hidden" for=${id}>Comment on ${path}${line ? `, line ${line}` : ""}</label><textarea id=${id} rows="2" value=${text} placeholder="To the agent" onInput=${(event) => setText(event.target.value)}></textarea><button class="primary" disabled=${!text.trim()}>Send</button></form>`;
}
