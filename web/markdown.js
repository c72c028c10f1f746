// Markdown as elements. What the text says of HTML is shown as text: nothing here makes elements of strings. Images are shown as
// links, so that nothing is loaded from elsewhere; links lead to http, https, mail or a path of the tree, and nowhere else.

import { html } from "./vendor/htm-preact.js";

/** A text in Markdown as elements. */
export function Markdown({ text, base = "/" }) {
  return html`<div class="markdown">${blocks(text.replace(/\r\n?/g, "\n").split("\n"), base, 0)}</div>`;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])\s+(.*)$/;

function isRule(line) {
  const marks = line.replaceAll(" ", "");
  return marks.length >= 3 && marks.length <= line.length && "-*_".includes(marks[0]) && marks === marks[0].repeat(marks.length);
}

function isTableLine(line) {
  return line.includes("|") && line.includes("-") && /^[\s:|-]+$/.test(line);
}

function blocks(lines, base, depth) {
  const found = [];
  let at = 0;
  const rest = (test) => {
    const begin = at;
    while (at < lines.length && test(lines[at])) at += 1;
    return lines.slice(begin, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = FENCE.exec(line);
    const heading = /^ {0,3}(#{1,6})\s+(.*)$/.exec(line);
    if (line.trim() === "") {
      at += 1;
    } else if (fence) {
      at += 1;
      const code = rest((line) => !line.trim().startsWith(fence[1]));
      at += 1;
      found.push(html`<pre class="code" tabindex="0"><code>${code.join("\n")}</code></pre>`);
    } else if (heading) {
      at += 1;
      const level = Math.min(6, heading[1].length + 2);
      found.push(html`<${`h${level}`}>${inline(heading[2].trim().replace(/ #+$/, ""), base)}</>`);
    } else if (isRule(line)) {
      at += 1;
      found.push(html`<hr/>`);
    } else if (/^ {0,3}>/.test(line) && depth < 6) {
      const quoted = rest((line) => /^ {0,3}>/.test(line)).map((line) => line.replace(/^ {0,3}> ?/, ""));
      found.push(html`<blockquote>${blocks(quoted, base, depth + 1)}</blockquote>`);
    } else if (/^\s{4,}\S/.test(line) && !ITEM.test(line)) {
      const code = rest((line) => /^\s{4,}/.test(line) || line.trim() === "").map((line) => line.slice(4));
      found.push(html`<pre class="code" tabindex="0"><code>${code.join("\n").trimEnd()}</code></pre>`);
    } else if (ITEM.test(line) && depth < 6) {
      found.push(list(lines, base, depth, () => at, (to) => (at = to)));
    } else if (line.includes("|") && isTableLine(lines[at + 1] ?? "")) {
      const table = rest((line) => line.includes("|"));
      found.push(rows(table, base));
    } else {
      const text = [line];
      at += 1;
      text.push(...rest((line) => line.trim() !== "" && !FENCE.test(line) && !/^ {0,3}(#{1,6}\s|>)/.test(line) && !ITEM.test(line)));
      found.push(html`<p>${inline(text.join("\n"), base)}</p>`);
    }
  }
  return found;
}

function list(lines, base, depth, get, set) {
  let at = get();
  const first = ITEM.exec(lines[at]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const items = [];
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[1].length < indent || item[1].length > indent + 1 || /\d/.test(item[2]) !== ordered) break;
    const own = [item[3]];
    at += 1;
    while (at < lines.length && (lines[at].trim() === "" ? /^\s+\S/.test(lines[at + 1] ?? "") && (lines[at + 1].search(/\S/) > indent) : lines[at].search(/\S/) > indent || (!ITEM.test(lines[at]) && !/^ {0,3}(#|>|```)/.test(lines[at])))) {
      own.push(lines[at].slice(Math.min(lines[at].search(/\S|$/), indent + 2)));
      at += 1;
    }
    while (own.length && own.at(-1).trim() === "") own.pop();
    const simple = own.every((line) => line.trim() !== "" && !ITEM.test(line) && !FENCE.test(line));
    items.push(html`<li>${simple ? inline(own.join("\n"), base) : blocks(own, base, depth + 1)}</li>`);
    while (lines[at]?.trim() === "" && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  set(Math.max(at, get() + 1));
  return ordered ? html`<ol>${items}</ol>` : html`<ul>${items}</ul>`;
}

function rows(lines, base) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => inline(cell.trim().replace(/\\\|/g, "|"), base));
  const [head, , ...body] = lines;
  return html`<div class="table" tabindex="0"><table><thead><tr>${cells(head).map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead><tbody>${body.map((line) => html`<tr>${cells(line).map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}

// Each mark is looked for where it can begin, and its end at most so far away: the work grows with the text and no faster.
const MARK = /[`![<h*_~\\ ]/g;
const LONGEST = 2000;
const MARKS = [
  [/(`+)([^`]|[^`][^]{0,2000}?[^`])\1(?!`)/y, ([, , code]) => html`<code>${code.replace(/^ (.+) $/s, "$1")}</code>`],
  [/!?\[([^[\]\n]{0,400})\]\(\s{0,9}<?([^\s()<>]{0,1000})>?(?:\s{1,9}"[^"\n]{0,400}")?\s{0,9}\)/y, ([, label, to], base, depth) => link(to, label || to, base, depth)],
  [/\[\[([^[\]|\n]{1,200})(?:\|([^[\]\n]{1,200}))?\]\]/y, ([, page, shown]) => html`<span class="wiki">${shown ?? page}</span>`],
  [/<?(https?:\/\/[^\s<>"'`]{1,1000}[^\s<>"'`.,;:!?)\]])>?/y, ([, to], base, depth) => link(to, to, base, depth)],
  [/(\*\*|__)([^\s*_]|[^\s][^\n]{0,400}?\S)\1/y, ([, , text], base, depth) => html`<strong>${inline(text, base, depth + 1)}</strong>`],
  [/([*_])(?=[^\s*_])([^*_\n]{1,400})\1(?!\w)/y, ([, , text], base, depth) => html`<em>${inline(text, base, depth + 1)}</em>`],
  [/~~(?=\S)([^~\n]{1,400})~~/y, ([, text], base, depth) => html`<del>${inline(text, base, depth + 1)}</del>`],
  [/\\([\\`*_{}[\]()#+\-.!|>~])/y, ([, character]) => character],
  [/ {2,9}\n/y, () => html`<br/>`],
];

function inline(text, base, depth = 0) {
  if (depth > 4) return text;
  const found = [];
  let [end, from, tried] = [0, 0, 0];
  for (;;) {
    MARK.lastIndex = from;
    const mark = MARK.exec(text);
    // A text that is nothing but marks is shown as it is.
    if (!mark || (tried += 1) > LONGEST) break;
    let taken = 0;
    for (const [pattern, make] of MARKS) {
      pattern.lastIndex = mark.index;
      const part = pattern.exec(text);
      if (!part || (/\w/.test(text[mark.index - 1] ?? "") && /^[_h]/.test(part[0]))) continue;
      found.push(text.slice(end, mark.index), make(part, base, depth));
      taken = part[0].length;
      break;
    }
    from = mark.index + (taken || 1);
    if (taken) end = from;
  }
  found.push(text.slice(end));
  return found;
}

/** Where a link of a text may lead; `null` for nowhere. */
export function target(address, base) {
  if (/^https?:\/\/[^\s]+$/i.test(address)) return { href: address, outside: true };
  if (/^mailto:[^\s?]+$/i.test(address)) return { href: address, outside: true };
  if (address.startsWith("#") || /^[a-z][a-z0-9+.-]*:/i.test(address) || address.startsWith("//")) return null;
  const parts = address.startsWith("/") ? [] : base.split("/").slice(0, -1);
  for (const part of address.replace(/[?#].*$/, "").split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "." && part !== "") parts.push(part);
  }
  let path;
  try {
    path = parts.filter(Boolean).map((part) => encodeURIComponent(decodeURIComponent(part))).join("/");
  } catch {
    return null;
  }
  return { href: `#/tree/${path}`, outside: false };
}

function link(address, label, base, depth) {
  const to = target(address, base);
  const shown = label === address ? label : inline(label, base, depth + 1);
  if (!to) return html`<span class="dead">${shown}</span>`;
  if (!to.outside) return html`<a href=${to.href}>${shown}</a>`;
  return html`<a href=${to.href} target="_blank" rel="noopener noreferrer nofollow" title=${to.href}>${shown}</a>`;
}
