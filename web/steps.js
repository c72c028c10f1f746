// The steps of a turn (`transcript.ndjson`) as cards, and the part of a reply that has come so far. Pure.

/** The calls that an answer of a model asks for, in the protocol of one JSON object or in the provider's own. */
export function calls(said) {
  if (said.calls?.length) return said.calls.map((call) => ({ name: call.name, arguments: parsed(call.arguments) }));
  const text = (said.text ?? "").replace(/^[\s\S]*<\/think>/, "");
  const begin = text.indexOf("{");
  const end = text.lastIndexOf("}");
  if (begin < 0 || end < begin) return [];
  const value = parsed(text.slice(begin, end + 1));
  if (Array.isArray(value?.tool_calls)) {
    return value.tool_calls.map((call) => {
      const inner = call.function ?? call;
      return { name: inner.name, arguments: parsed(inner.arguments) };
    });
  }
  return value?.name ? [{ name: value.name, arguments: parsed(value.arguments) }] : [];
}

function parsed(value) {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Thoughts and calls in the order in which they happened: `{thought}`, `{call, result, ms}`, `{mails}`, `{end}`. */
export function cards(records) {
  const cards = [];
  let waiting = [];
  for (const record of records) {
    if (record.kind === "said") {
      const { said, at_ms, ms } = record;
      const thought = said.thoughts ?? /<think>([\s\S]*?)<\/think>/.exec(said.text ?? "")?.[1];
      if (thought?.trim()) cards.push({ type: "thought", text: thought.trim(), at_ms, ms });
      waiting = calls(said).map((call) => ({ type: "call", call, at_ms, result: undefined, ms: undefined }));
      cards.push(...waiting);
      if (waiting.length === 0 && said.text?.trim() && !said.calls?.length) {
        cards.push({ type: "text", text: said.text, at_ms, ms });
      }
    } else if (record.kind === "outcome") {
      const card = waiting.shift();
      const done = { result: record.result, ms: record.ms, parked_ms: record.parked_ms };
      if (card) Object.assign(card, done);
      else cards.push({ type: "call", call: { name: "call", arguments: {} }, at_ms: record.at_ms, ...done });
    } else if (record.kind === "mail") {
      cards.push({ type: "mail", mails: record.mails, at_ms: record.at_ms });
    } else if (record.kind === "ended" && record.end.failed) {
      cards.push({ type: "failed", why: record.end.failed.why, error: record.end.failed.error, at_ms: record.at_ms });
    }
  }
  return cards;
}

/** The text of a reply in an answer that is still being written; `undefined` if it is none, or not yet. */
export function growingReply(text) {
  const rest = (text ?? "").replace(/^[\s\S]*<\/think>/, "");
  if (!/^\s*(```(json)?\s*)?[{[]/.test(rest)) return undefined;
  const path = rest.search(/chat\/control\/reply/);
  if (path < 0) return undefined;
  const content = /"content"\s*:\s*"/.exec(rest);
  if (!content) return undefined;
  let value = rest.slice(content.index + content[0].length);
  const end = /(?<!\\)(?:\\\\)*"/.exec(value);
  if (end) value = value.slice(0, end.index + end[0].length - 1);
  // What ends within an escape waits for its rest.
  else value = value.replace(/(?<!\\)((?:\\\\)*)\\(u[0-9a-fA-F]{0,3})?$/, "$1");
  try {
    return JSON.parse(`"${value.replace(/[\u0000-\u001f]/g, "")}"`);
  } catch {
    return undefined;
  }
}

/** The reasoning in an answer that is still being written: a call is shown when it is made. */
export function growingThought(text) {
  const think = /^\s*<think>([\s\S]*?)(<\/think>|$)/.exec(text ?? "");
  if (think) return think[1].trim();
  const plain = (text ?? "").trimStart();
  return /^[{[`]/.test(plain) ? "" : plain;
}
