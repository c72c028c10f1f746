// Tree: every file of the host, read when it is opened.

import { Ago, Empty, Json, Refusal, Rows, Split, html, useCallback, useEffect, useMemo, useState, useLoaded, treeLink } from "../ui.js";
import { bytes } from "../format.js";
import { followLog, followValue } from "../follow.js";
import { exists, list, read, stat } from "../fs.js";
import { Markdown } from "../markdown.js";
import { Control } from "../form.js";

/** The names of a directory that are read at first, and each time its end is seen. */
const FIRST = 1000;
const PAGE = 10_000;
const SHOWN = 262144;

const cache = new Map(); // path -> {entries, truncated, error}
const open = new Set(["/"]);
/** The path that was chosen in the list: a directory that was reached in another way is opened. */
let moved;

export function Tree({ rest }) {
  const parts = rest.filter(Boolean);
  const path = `/${parts.join("/")}`;
  const [version, setVersion] = useState(0);
  const draw = useCallback(() => setVersion((version) => version + 1), []);
  const load = useCallback(async (dir, after) => {
    const before = cache.get(dir);
    if (before?.loading) return;
    cache.set(dir, { entries: [], ...before, loading: true });
    try {
      const { entries, truncated } = await list(dir, { max: after === undefined ? FIRST : PAGE, after });
      cache.set(dir, { entries: after === undefined ? entries : [...(before?.entries ?? []), ...entries], truncated });
    } catch (error) {
      cache.set(dir, { entries: before?.entries ?? [], error });
    }
    draw();
  }, []);
  // The directories above what is shown are open.
  useEffect(() => {
    open.add("/");
    for (let at = 1; at < parts.length; at += 1) open.add(`/${parts.slice(0, at).join("/")}`);
    for (const dir of open) if (!cache.has(dir)) load(dir);
    draw();
    if (moved === path || path === "/") return;
    stat(path).then(({ type }) => {
      if (type !== "directory") return;
      open.add(path);
      if (!cache.has(path)) load(path);
    }, () => {});
  }, [path]);
  const items = useMemo(() => flat("/", 0, []), [version]);
  const toggle = (item) => {
    if (item.type === "more") return load(item.dir, item.after);
    if (item.type === "directory") {
      if (open.has(item.path)) open.delete(item.path);
      else {
        open.add(item.path);
        load(item.path);
      }
      draw();
    }
    moved = item.path;
    if (item.type !== "directory" || open.has(item.path)) location.hash = treeLink(item.path);
  };
  // The next page of a long directory is read when its end is seen.
  const seen = (drawn) => {
    const more = drawn.find((item) => item.type === "more");
    if (more) load(more.dir, more.after);
  };
  const keys = (event) => {
    const item = items.find((item) => item.path === path);
    if (!item || item.type !== "directory") return;
    if ((event.key === "ArrowRight" && !open.has(path)) || (event.key === "ArrowLeft" && open.has(path))) {
      event.preventDefault();
      toggle(item);
    }
  };
  const listed = html`<p class="title" aria-hidden="true">Tree</p><div class="grow fill" onKeyDown=${keys}><${Rows} items=${items} height=${28} label="Files" id=${(item) => item.path} selected=${path} onDrawn=${seen} onSelect=${(key, item) => {
    if (item.type === "more" || item.type === "error") return;
    moved = item.path;
    location.hash = treeLink(item.path);
  }} onOpen=${toggle} className="tree" row=${(item) => html`<${Name} item=${item}/>`}/></div>`;
  return html`<${Split} open=${parts.length > 0} onBack=${() => (location.hash = "#/tree")} list=${listed} detail=${html`<${Shown} key=${path} path=${path}/>`}/>`;
}

function flat(dir, depth, into) {
  const known = cache.get(dir);
  if (!known) return into;
  for (const entry of known.entries) {
    const path = `${dir === "/" ? "" : dir}/${entry.name}`;
    into.push({ ...entry, path, depth, open: open.has(path) });
    if (entry.type === "directory" && open.has(path)) flat(path, depth + 1, into);
  }
  if (known.error) into.push({ name: known.error.message, type: "error", path: `${dir}\u0000error`, depth });
  if (known.truncated) into.push({ name: "more…", type: "more", dir, after: known.entries.at(-1)?.name, path: `${dir}\u0000more`, depth });
  return into;
}

const SIGNS = { directory: "▸", link: "↪", control: "✎", message: "✎", waiting: "◷", log: "≡", more: "…", error: "!" };

function Name({ item }) {
  const sign = item.type === "directory" && item.open ? "▾" : (SIGNS[item.kind ?? item.type] ?? "");
  return html`<span class=${`indent indent-${Math.min(12, item.depth)}`}></span><span class="sign" aria-hidden="true">${sign}</span><span class=${`name ${item.type}`}>${item.name}</span>${item.target ? html`<span class="muted">→ ${item.target}</span>` : null}<span class="grow"></span>${item.size ? html`<span class="muted size">${bytes(item.size)}</span>` : null}`;
}

function Crumbs({ path }) {
  const parts = path.split("/").filter(Boolean);
  return html`<p class="crumbs"><a href="#/tree">/</a>${parts.map((part, at) => html`<span> <a href=${treeLink(`/${parts.slice(0, at + 1).join("/")}`)}>${part}</a>${at + 1 < parts.length ? " /" : ""}</span>`)}</p>`;
}

/** What stands at a path, in the form that fits its kind. */
function Shown({ path }) {
  const [entry, error, again] = useLoaded(() => stat(path), [path]);
  return html`<article class="file"><h2 class="hidden">${path}</h2><${Crumbs} path=${path}/>
    ${error ? html`<${Refusal} error=${error} again=${again}/>` : null}
    ${entry ? html`<p class="muted small">${entry.type === "directory" ? "directory" : `${entry.kind ?? "file"}${entry.size ? ` · ${bytes(entry.size)}` : ""}`}${entry.modified_ms > 0 ? html` · <${Ago} ms=${entry.modified_ms}/>` : null}</p>` : null}
    ${!entry ? null : entry.type === "directory" ? html`<${Directory} path=${path}/>` : ["control", "message"].includes(entry.kind) ? html`<${Control} path=${path}/>` : entry.kind === "log" ? html`<${LogFile} path=${path}/>` : entry.kind === "waiting" ? html`<${WaitingFile} path=${path}/>` : entry.kind === "live" ? html`<${LiveFile} path=${path}/>` : html`<${PlainFile} path=${path} size=${entry.size}/>`}
  </article>`;
}

function Directory({ path }) {
  const file = `${path === "/" ? "" : path}/README.md`;
  const [readme] = useLoaded(async (signal) => ((await exists(file)) ? read(file, { signal }) : null), [path]);
  return !readme ? html`<${Empty}>Choose a file.</${Empty}>` : html`<${Content} path=${`${path}/README.md`} text=${readme}/>`;
}

/** A text by the ending of its name. */
export function Content({ path, text }) {
  const [raw, setRaw] = useState(false);
  const ending = /\.(\w+)$/.exec(path)?.[1];
  const fits = ["md", "json", "ndjson"].includes(ending) || /\/memory\/items\/[^/]+\/(content|versions\/\d+)$/.test(path);
  const body = raw || !fits ? html`<pre class="text" tabindex="0">${text}</pre>` : ending === "json" ? html`<${Json} value=${reparsed(text)} most=${SHOWN}/>` : ending === "ndjson" ? html`<${Lines} text=${text}/>` : html`<${Markdown} text=${text} base=${path}/>`;
  return html`${fits ? html`<button class="plain small" aria-pressed=${raw ? "true" : "false"} onClick=${() => setRaw(!raw)}>raw</button>` : null}${body}`;
}

function reparsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function Lines({ text }) {
  const lines = text.split("\n").filter(Boolean);
  return html`<ol class="lines">${lines.slice(-500).map((line) => html`<li><details><summary>${line.length > 240 ? `${line.slice(0, 240)}…` : line}</summary><${Json} value=${reparsed(line)}/></details></li>`)}</ol>`;
}

function PlainFile({ path, size }) {
  const [text, error] = useLoaded((signal) => read(path, { signal, most: size > SHOWN ? SHOWN : undefined }), [path]);
  if (error) return html`<${Refusal} error=${error}/>`;
  if (text === undefined) return null;
  if (text.includes("\u0000")) return html`<${Empty}>Not a text: ${bytes(size)}.</${Empty}>`;
  return html`<${Content} path=${path} text=${text}/>${size > SHOWN ? html`<p class="muted">The first ${bytes(SHOWN)} of ${bytes(size)}.</p>` : null}`;
}

function LiveFile({ path }) {
  const [text, setText] = useState(undefined);
  const [error, setError] = useState(undefined);
  useEffect(() => followValue(path, setText, setError), [path]);
  return html`<${Refusal} error=${error}/>${text === undefined ? null : html`<${Content} path=${path} text=${text}/>`}`;
}

function LogFile({ path }) {
  const [lines, setLines] = useState(undefined);
  const [error, setError] = useState(undefined);
  useEffect(() => followLog(path, (more, anew) => setLines((before) => (anew ? more : [...(before ?? []), ...more]).slice(-5000)), { onError: setError }), [path]);
  return html`<${Refusal} error=${error}/>${lines === undefined ? null : html`<${Content} path=${path} text=${lines.join("\n")}/>`}`;
}

/** A file that waits is looked at, and waited for only if somebody asks. */
function WaitingFile({ path }) {
  const [text, setText] = useState(undefined);
  const [error, setError] = useState(undefined);
  const [waits, setWaits] = useState(false);
  const look = async (wait) => {
    setWaits(wait > 0);
    setError(undefined);
    await read(path, { wait }).then(setText, setError);
    setWaits(false);
  };
  useEffect(() => {
    look(0);
  }, [path]);
  const busy = error?.code === "busy" || error?.code === "timeout";
  return html`${busy ? html`<p class="muted">${waits ? "Waiting…" : "Not settled yet."} <button onClick=${() => look(300)} disabled=${waits}>Wait for it</button></p>` : html`<${Refusal} error=${error}/>`}${text === undefined ? null : html`<${Content} path=${path} text=${text}/>`}`;
}
