// The small parts of which panels are made.

import { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/htm-preact.js";
import { ago, at, clock } from "./format.js";

export { html, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** A number, or a word, that stands in a file: hovering tells which, and a test compares them. */
export function Figure({ file, pointer, value, as = String, label }) {
  const raw = value === null || value === undefined ? "" : String(value);
  const where = pointer ? `${file} → ${pointer}` : file;
  return html`<data class="figure" value=${raw} data-file=${file} data-pointer=${pointer ?? ""} title=${where}>${as(value)}${label ? html` <span class="unit">${label}</span>` : null}</data>`;
}

/** A time that counts on by itself. */
export function Ago({ ms }) {
  useNow(ms && Date.now() - ms < 120_000 ? 1000 : 20_000);
  return html`<time title=${clock(ms)} dateTime=${ms ? new Date(ms).toISOString() : ""}>${ago(ms)}</time>`;
}

/** Draws again every so often. */
export function useNow(every) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

const MARKS = { approval: "?", blocked: "!", stalled: "…", working: "▸", idle: "·", done: "✓" };

/** A state as a word in its colour. */
export function State({ name, mark }) {
  const shown = (name ?? "").replaceAll("_", " ");
  return html`<span class=${`state state-${name}`}><span class="mark" aria-hidden="true">${mark ?? MARKS[name] ?? stateMark(name)}</span>${shown}</span>`;
}

function stateMark(name) {
  if (["failed", "timed_out", "interrupted", "refused", "denied", "expired", "void"].includes(name)) return "!";
  if (["running", "queued", "thinking"].includes(name)) return "▸";
  if (["waiting_for_approval", "paused", "waiting"].includes(name)) return "?";
  return name === "done" || name === "allowed" ? "✓" : "·";
}

/** A share of a whole, as a bar with words for those who do not see it. */
export function Meter({ share, label }) {
  const level = share > 0.9 ? "high" : share > 0.7 ? "middle" : "low";
  const bar = useRef(null);
  useLayoutEffect(() => bar.current?.style.setProperty("width", `${Math.min(100, share * 100)}%`), [share]);
  return html`<span class=${`meter ${level}`} role="img" aria-label=${label} title=${label}><span ref=${bar}></span></span>`;
}

/** A refusal, with its code. */
export function Refusal({ error, again }) {
  if (!error) return null;
  return html`<p class="refusal" role="alert"><strong>${error.code ?? "error"}</strong> ${error.message}${again ? html` <button class="plain" onClick=${again}>Try again</button>` : null}</p>`;
}

export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

/** A path of the tree as a link to it. */
export function PathLink({ path, children }) {
  return html`<a class="path" href=${treeLink(path)}>${children ?? path}</a>`;
}

export function treeLink(path) {
  return `#/tree${path.split("/").map(encodeURIComponent).join("/")}`;
}

/** Loads something when `keys` change: `[value, error, again]`. An answer that comes too late is dropped. */
export function useLoaded(load, keys) {
  const [shown, setShown] = useState({ value: undefined, error: undefined });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    load(controller.signal).then(
      (value) => controller.signal.aborted || setShown({ value, error: undefined }),
      (error) => controller.signal.aborted || setShown((before) => ({ value: before.value, error })),
    );
    return () => controller.abort();
  }, [...keys, turn]);
  return [shown.value, shown.error, useCallback(() => setTurn((turn) => turn + 1), [])];
}

/** JSON, with its parts in colours. Long texts are cut; the file has them. */
export function Json({ value, most = 20_000 }) {
  const text = useMemo(() => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "")), [value]);
  const shown = text.length > most ? `${text.slice(0, most)}\n… ${text.length - most} characters more` : text;
  const parts = useMemo(() => {
    const pattern = /("(?:[^"\\\n]|\\.)*")(\s*:)?|\b(true|false|null)\b|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)/g;
    const parts = [];
    let end = 0;
    for (const found of shown.matchAll(pattern)) {
      if (parts.length > 4000) break;
      parts.push(shown.slice(end, found.index));
      const kind = found[2] ? "key" : found[1] ? "string" : found[3] ? "word" : "number";
      parts.push(html`<span class=${`json-${kind}`}>${found[1] ?? found[0]}</span>`, found[2] ?? "");
      end = found.index + found[0].length;
    }
    parts.push(shown.slice(end));
    return parts;
  }, [shown]);
  return html`<pre class="json" tabindex="0">${parts}</pre>`;
}

/** A line of text that narrows a list. */
export function Filter({ value, onInput, label, children }) {
  return html`<div class="filter"><label class="grow"><span class="hidden">${label}</span><input type="search" data-filter value=${value} placeholder=${label} onInput=${(event) => onInput(event.target.value)} onKeyDown=${(event) => {
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      event.target.closest(".pane")?.querySelector("[data-rows]")?.focus();
    }
  }}/></label>${children}</div>`;
}

export function Choice({ label, value, options, onChange }) {
  return html`<label class="choice"><span class="hidden">${label}</span><select value=${value} onChange=${(event) => onChange(event.target.value)}>${options.map((option) => {
    const [word, shown] = Array.isArray(option) ? option : [option, option];
    return html`<option value=${word} selected=${word === value}>${shown}</option>`;
  })}</select></label>`;
}

/** Rows of which only those on the screen are drawn. Arrow keys move, Enter opens. A row is one option of a listbox. */
export function Rows({ items, height = 36, label, row, selected, onSelect, onOpen, id, onDrawn, stick = false, className = "" }) {
  const box = useRef(null);
  const slug = label.replace(/\W+/g, "-");
  const [view, setView] = useState({ top: 0, space: 800 });
  const inner = useRef(null);
  const sticking = useRef(stick);
  const measure = useCallback(() => {
    if (!box.current) return;
    const { scrollTop, clientHeight, scrollHeight } = box.current;
    sticking.current = stick && scrollTop + clientHeight >= scrollHeight - height;
    setView((view) => (view.top === scrollTop && view.space === clientHeight ? view : { top: scrollTop, space: clientHeight }));
  }, [stick, height]);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    inner.current.style.height = `${items.length * height}px`;
    if (stick && sticking.current) box.current.scrollTop = box.current.scrollHeight;
    measure();
  }, [items.length, height]);
  // What is chosen from elsewhere is brought to sight, once.
  const sought = useRef(undefined);
  useLayoutEffect(() => {
    if (selected === undefined || sought.current === selected || stick) return;
    const index = items.findIndex((item, index) => (id ? id(item) : index) === selected);
    if (index < 0) return;
    sought.current = selected;
    const { scrollTop, clientHeight } = box.current;
    if (index * height < scrollTop || (index + 1) * height > scrollTop + clientHeight) box.current.scrollTop = Math.max(0, index * height - clientHeight / 3);
  }, [selected, items]);
  const first = Math.max(0, Math.floor(view.top / height) - 6);
  const last = Math.min(items.length, Math.ceil((view.top + view.space) / height) + 6);
  useEffect(() => {
    onDrawn?.(items.slice(first, last));
  }, [first, last, items]);
  const drawn = [];
  for (let index = first; index < last; index += 1) {
    const item = items[index];
    const key = id ? id(item) : index;
    drawn.push(html`<${Row} key=${key} index=${index} height=${height} chosen=${selected === key} name=${`${slug}-${index}`} size=${items.length} onClick=${() => {
      onSelect?.(key, item);
      onOpen?.(item);
    }}>${row(item)}</${Row}>`);
  }
  const keyed = (item) => (id ? id(item) : items.indexOf(item));
  const move = (to) => {
    const index = Math.max(0, Math.min(items.length - 1, to));
    if (!items[index]) return;
    sought.current = id ? id(items[index]) : index;
    onSelect?.(id ? id(items[index]) : index, items[index]);
    const top = index * height;
    if (top < box.current.scrollTop) box.current.scrollTop = top;
    else if (top + height > box.current.scrollTop + box.current.clientHeight) box.current.scrollTop = top + height - box.current.clientHeight;
  };
  const keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = items.findIndex((item) => keyed(item) === selected);
    const page = Math.max(1, Math.floor(view.space / height) - 1);
    const to = { ArrowDown: now + 1, j: now + 1, ArrowUp: now - 1, k: now - 1, Home: 0, End: items.length - 1, PageDown: now + page, PageUp: now - page }[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "Enter" && now >= 0) onOpen?.(items[now]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const shown = selected === undefined ? -1 : items.slice(first, last).findIndex((item) => keyed(item) === selected);
  return html`<div class=${`rows ${className}`} ref=${box} data-rows role="listbox" tabindex="0" aria-label=${label} aria-activedescendant=${shown >= 0 ? `${slug}-${first + shown}` : undefined} onScroll=${measure} onKeyDown=${keys}><div class="rows-inner" role="presentation" ref=${inner}>${drawn}</div></div>`;
}

function Row({ index, height, chosen, name, size, onClick, children }) {
  const own = useRef(null);
  useLayoutEffect(() => {
    own.current.style.transform = `translateY(${index * height}px)`;
    own.current.style.height = `${height}px`;
  }, [index, height]);
  return html`<div class=${chosen ? "row chosen" : "row"} ref=${own} id=${name} role="option" aria-selected=${chosen ? "true" : "false"} aria-posinset=${index + 1} aria-setsize=${size} onClick=${onClick}>${children}</div>`;
}

/** A list beside what is chosen in it; on a phone one after the other. */
export function Split({ list, detail, onBack, open, narrow }) {
  return html`<div class=${`split${open ? " open" : ""}${narrow ? " narrow" : ""}`}><div class="pane list">${list}</div><div class="pane detail">${open ? html`<button class="back plain" onClick=${onBack}>‹ Back</button>` : null}${detail}</div></div>`;
}

/** Figures under names. */
export function Facts({ rows }) {
  return html`<dl class="facts">${rows.filter(Boolean).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

export { at };
