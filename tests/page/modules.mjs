// The pure modules of the page, by themselves. usage: node modules.mjs DIRECTORY-OF-THE-PAGE (a copy, with a package.json of modules)

import assert from "node:assert/strict";

const at = (name) => import(`${process.argv[2]}/${name}`);
const { Markdown, target } = await at("markdown.js");
const { cards, growingReply, growingThought } = await at("steps.js");
const { patch, sideBySide } = await at("diff.js");
const { collected, fields, placed } = await at("form.js");
const { quantile } = await at("panels/health.js");
const format = await at("format.js");

/** The elements of a tree, as text: `<p>…</p>`. */
function shown(node) {
  if (Array.isArray(node)) return node.map(shown).join("");
  if (node === null || node === undefined || typeof node === "boolean") return "";
  if (typeof node !== "object") return String(node).replaceAll("<", "&lt;");
  if (typeof node.type === "function") return shown(node.type(node.props));
  const { children, class: _, tabindex, scope, ...props } = node.props;
  const attributes = Object.entries(props).map(([name, value]) => ` ${name}=${value}`).join("");
  return `<${node.type}${attributes}>${shown(children)}</${node.type}>`;
}

const markdown = (text) => shown(Markdown({ text, base: "/a/b/page.md" })).replace(/^<div>|<\/div>$/g, "");

// Markdown is elements, and HTML in it is text.
assert.equal(markdown("# A *b*\n\nc `<d>` **e** f"), "<h3>A <em>b</em></h3><p>c <code>&lt;d></code> <strong>e</strong> f</p>");
assert.equal(markdown("- a\n- b\n  - c\n\n1. d"), "<ul><li>a</li><li><p>b</p><ul><li>c</li></ul></li></ul><ol><li>d</li></ol>");
assert.equal(markdown("```sh\n<x>\n```"), "<pre><code>&lt;x></code></pre>");
assert.equal(markdown("| a | b |\n|---|:-:|\n| 1 | `|` |"), "<div><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>`</td><td>`</td></tr></tbody></table></div>");
assert.equal(markdown("> q\n\n---\n\nsnake_case_word and 2*3*4"), "<blockquote><p>q</p></blockquote><hr></hr><p>snake_case_word and 2*3*4</p>");
for (const evil of ["<script>x</script>", "<img src=x onerror=y>", "[a](javascript:x)", "[a](JaVaScRiPt:x)", "[a](data:text/html,x)", "[a](//evil)", "[a](vbscript:x)", "![a](javascript:x)", "<javascript:x>", "[a]( javascript:x)", "[a](\u0001javascript:x)", "<iframe>", "[a](blob:x)"]) {
  assert.doesNotMatch(markdown(evil), /<(?!\/?(p|span|div)\b|\/a>|a href=#\/tree)/, evil);
}
assert.deepEqual(target("../x y.md", "/a/b/c.md"), { href: "#/tree/a/x%20y.md", outside: false });
assert.deepEqual(target("https://example.org/a", "/"), { href: "https://example.org/a", outside: true });
assert.equal(target("%zz", "/"), null);

// No text takes long: the work grows with it and no faster.
const long = ["*", "[", "`", "_a", "** ", "- ", "> ", "| ", "[[a", "![x](", "http://", "# ", "- a\n", "  ", "```\n", "1. x\n  - y\n", "\\", "<think>", "`a", "**a", "*a ", "~~a", "\"\\"];
for (const part of long) {
  const times = [4000, 16_000].map((count) => {
    const text = part.repeat(count);
    const begun = process.hrtime.bigint();
    Markdown({ text, base: "/" });
    growingReply(`{"chat/control/reply" "content": "${text}`);
    growingThought(text);
    return Number(process.hrtime.bigint() - begun) / 1e6;
  });
  // Four times the text: sixteen times the work would be a square. Small times say nothing.
  assert.ok(times[1] < 400 || times[1] < times[0] * 12, `${JSON.stringify(part)}: ${times}`);
}

// A turn is cards: thoughts, calls with their results, in either protocol.
const said = (text, more = {}) => ({ kind: "said", at_ms: 1, ms: 2, said: { text, ...more } });
const outcome = (result) => ({ kind: "outcome", at_ms: 3, ms: 4, parked_ms: 0, result });
const one = cards([said('<think>hm</think>{"tool_calls":[{"name":"file_read","arguments":{"path":"a"}}]}'), outcome({ content: "x" })]);
assert.deepEqual(one.map((card) => [card.type, card.call?.name, card.result?.content]), [["thought", undefined, undefined], ["call", "file_read", "x"]]);
const two = cards([said("", { calls: [{ name: "a", arguments: { path: "1" } }, { name: "b", arguments: '{"path":"2"}' }] }), outcome({ n: 1 }), outcome({ n: 2 })]);
assert.deepEqual(two.map((card) => [card.call.name, card.call.arguments.path, card.result.n]), [["a", "1", 1], ["b", "2", 2]]);
assert.equal(cards([said("not { json")])[0].type, "text");
assert.equal(cards([{ kind: "ended", at_ms: 1, end: { failed: { why: "x", error: { code: "y", message: "z" } } } }])[0].error.code, "y");
assert.equal(growingReply('{"tool_calls":[{"arguments":{"path":"agents/self/chat/control/reply","content":"a \\"b\\"\\n c\\'), 'a "b"\n c');
assert.equal(growingReply('{"path":"agents/self/chat/control/reply","content":"a\\\\"}'), "a\\");
assert.equal(growingReply('{"path":"agents/self/memory/x","content":"a'), undefined);
assert.equal(growingThought("<think>so"), "so");
assert.equal(growingThought(' {"tool'), "");

// Differences, side by side and as patches.
assert.deepEqual(sideBySide("a\nb\nc", "a\nx\nc\nd").map(([left, right]) => [left, right]), [["a", "a"], ["b", "x"], ["c", "c"], [null, "d"]]);
const [file] = patch("diff --git a/x b/y\nrename from x\n--- a/x\n+++ b/y\n@@ -1,2 +1,3 @@\n-a\n+b\n+c\n d\n");
assert.deepEqual([file.path, file.state, file.added, file.removed, file.hunks[0].lines.map((row) => row.line)], ["y", "renamed", 2, 1, [1, 1, 2, 3]]);

// Forms: fields from a schema, and a refusal at the field that it names.
const schema = { type: "object", required: ["kind"], properties: { kind: { type: "string" }, content: {}, tags: { type: "array", items: { type: "string" } }, n: { anyOf: [{ type: "integer" }, { type: "null" }] }, mode: { $ref: "#/$defs/Mode" } } };
const root = { $defs: { Mode: { oneOf: [{ const: "a" }, { const: "b" }] } } };
const list = fields(schema, root);
assert.deepEqual(list.map((field) => [field.name, field.kind, field.required]), [["kind", "text", true], ["content", "json", false], ["tags", "lines", false], ["n", "integer", false], ["mode", "choice", false]]);
assert.deepEqual(collected(list, { kind: "x", content: "plain", tags: " a \n\nb", n: "7" }), { value: { kind: "x", content: "plain", tags: ["a", "b"], n: 7 }, faults: {} });
assert.deepEqual(Object.keys(collected(list, { n: "x" }).faults), ["n"]);
assert.deepEqual(placed("create: content is missing; tags[0]: is no string; the disk is full", list, "create"), { at: { content: "content is missing", tags: "tags[0]: is no string" }, rest: "the disk is full" });

assert.equal(quantile({ a: { below_us: { 10: 5 } } }, { a: { below_us: { 10: 14, 100: 1 } } }, 0.99), 100);
assert.equal(format.ago(1000, 66_000), "1 min ago");
assert.equal(format.oneLine("# A **b**\n c", 5), "A b c");
