// Memory: the items of an agent, found by words, with all their versions beside each other.

import { Ago, Choice, Empty, Facts, Figure, Filter, PathLink, Refusal, Rows, Split, html, useEffect, useMemo, useState, useLoaded } from "../ui.js";
import { useStore } from "../agents.js";
import { sideBySide } from "../diff.js";
import { count, oneLine } from "../format.js";
import { command, list, read, readJson } from "../fs.js";
import { Content } from "./tree.js";

export function Memory({ rest: [agent, name] }) {
  const store = useStore();
  const ids = [...store.agents.keys()].sort();
  const who = agent ?? ids[0];
  const [query, setQuery] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(query), 200);
    return () => clearTimeout(timer);
  }, [query]);
  const home = `/agents/${who}/memory`;
  const told = useMemo(() => store.events.findLast?.((event) => event.agent === who && event.path?.startsWith(home)), [store.version, who]);
  const [found, error, again] = useLoaded(() => (who ? command(`${home}/control/search.json`, { query: asked, limit: 200 }, { wait: 30 }) : new Promise(() => {})), [who, asked, told?.seq]);
  const items = found?.result?.results ?? [];
  const go = (name) => (location.hash = `#/memory/${encodeURIComponent(who)}${name ? `/${encodeURIComponent(name)}` : ""}`);
  const list = html`<p class="title" aria-hidden="true">Memory</p>
    <${Filter} value=${query} onInput=${setQuery} label="Search memory"><${Choice} label="Agent" value=${who ?? ""} onChange=${(id) => (location.hash = `#/memory/${encodeURIComponent(id)}`)} options=${ids}/></${Filter}>
    <${Refusal} error=${error ?? found?.error} again=${again}/>
    ${found && !items.length ? html`<${Empty}>${asked ? "Nothing found." : `${who} remembers nothing yet.`}</${Empty}>` : null}
    <${Rows} items=${items} height=${56} label="Memories" id=${nameOf} selected=${name} onSelect=${go} className="memories" row=${(item) => html`<div class="need"><span class="who"><b>${nameOf(item)}</b> <span class="tag">${item.kind}</span>${item.active ? html`<span class="tag on">active</span>` : null}${item.was ? html`<span class="tag">was</span>` : null}</span><span class="words">${oneLine(item.snippet)}</span><span class="sums"><span class="muted">v${item.version}</span> <${Ago} ms=${item.written_at_ms}/></span></div>`}/>`;
  return html`<${Split} open=${Boolean(name)} onBack=${() => go()} list=${list} detail=${name ? html`<${Item} key=${`${who}/${name}`} path=${`${home}/items/${name}`} name=${name} told=${told?.seq}/>` : html`<${Empty}>Choose a memory.</${Empty}>`}/>`;
}

function nameOf(item) {
  return /\/items\/([^/]+)/.exec(item.memory_path)?.[1] ?? item.memory_path;
}

function Item({ path, name, told }) {
  const [meta, error] = useLoaded((signal) => readJson(`${path}/meta.json`, { signal }), [path, told]);
  const [text] = useLoaded((signal) => read(`${path}/content`, { signal }), [path, told]);
  const [versions] = useLoaded((signal) => list(`${path}/versions`, { max: 10_000, signal }), [path, told]);
  const numbers = (versions?.entries ?? []).map((entry) => Number(entry.name)).sort((a, b) => b - a);
  const [pair, setPair] = useState(undefined);
  const [left, right] = pair ?? [numbers[1], numbers[0]];
  const file = `${path}/meta.json`;
  return html`<article><header><h2>${name}</h2></header><${Refusal} error=${error}/>
    ${meta ? html`<${Facts} rows=${[
      ["kind", html`<${Figure} file=${file} pointer="kind" value=${meta.kind}/>`],
      ["version", html`<${Figure} file=${file} pointer="version" value=${meta.version}/>`],
      meta.tokens === undefined ? null : ["tokens", html`<${Figure} file=${file} pointer="tokens" value=${meta.tokens} as=${count}/>`],
      meta.tags?.length ? ["tags", meta.tags.join(", ")] : null,
      ["file", html`<${PathLink} path=${`${path}/content`}/>`],
    ]}/>` : null}
    ${text === undefined ? null : html`<section class="said"><${Content} path=${`${path}/content`} text=${text}/></section>`}
    ${numbers.length > 1 ? html`<section><h3>Versions</h3><div class="filter"><${Choice} label="Older version" value=${String(left)} onChange=${(word) => setPair([Number(word), right])} options=${numbers.map(String)}/><span aria-hidden="true">→</span><${Choice} label="Newer version" value=${String(right)} onChange=${(word) => setPair([left, Number(word)])} options=${numbers.map(String)}/></div><${Versions} path=${path} left=${left} right=${right}/></section>` : null}
  </article>`;
}

function Versions({ path, left, right }) {
  const load = (number) => read(`${path}/versions/${number}`);
  const [texts, error] = useLoaded(() => Promise.all([load(left), load(right)]), [path, left, right]);
  const rows = useMemo(() => (texts ? sideBySide(texts[0], texts[1]) : []), [texts]);
  return html`<${Refusal} error=${error}/><div class="beside" tabindex="0"><table><thead><tr><th scope="col">version ${left}</th><th scope="col">version ${right}</th></tr></thead><tbody>${rows.slice(0, 3000).map(([before, after, kind]) => html`<tr class=${kind}><td class=${before === null ? "none" : kind === "changed" ? "gone" : ""}>${before}</td><td class=${after === null ? "none" : kind === "changed" ? "come" : ""}>${after}</td></tr>`)}</tbody></table></div>`;
}
