// The line in which a person writes to an agent.

import { html, useRef, useState } from "../ui.js";
import { command } from "../fs.js";

export function Composer({ agent, onSent }) {
  const [text, setText] = useState("");
  const [error, setError] = useState(undefined);
  const [busy, setBusy] = useState(false);
  const own = useRef(null);
  const send = async (event) => {
    event?.preventDefault();
    if (!text.trim() || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      const answer = await command(`/agents/${agent}/chat/control/input.json`, { input: text });
      setText("");
      onSent?.(answer.job_id, text);
    } catch (refusal) {
      setError(refusal);
    }
    setBusy(false);
    own.current?.focus();
  };
  return html`<form class=${error ? "composer wrong" : "composer"} onSubmit=${send}>
    <label class="hidden" for=${`composer-${agent}`}>Message to ${agent}</label>
    <textarea id=${`composer-${agent}`} ref=${own} data-composer rows="2" placeholder=${`Write to ${agent}`} value=${text} aria-invalid=${error ? "true" : undefined} aria-describedby=${error ? `composer-${agent}-fault` : undefined} onInput=${(event) => setText(event.target.value)} onKeyDown=${(event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
    }}></textarea>
    <button class="primary" disabled=${busy || !text.trim()}>Send</button>
    ${error ? html`<p class="refusal" id=${`composer-${agent}-fault`} role="alert"><strong>${error.code}</strong> ${error.message}</p>` : null}
  </form>`;
}
