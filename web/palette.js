// Jump: one line that finds panels, agents and paths.

import { html, useEffect, useMemo, useRef, useState } from "./ui.js";
import { byNeed } from "./agents.js";
import { treeLink } from "./ui.js";

export function Palette({ panels, actions, onClose }) {
  const own = useRef(null);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  useEffect(() => {
    own.current.showModal();
  }, []);
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const all = [
      ...panels.map((panel) => ({ name: panel.name, about: "panel", href: `#/${panel.word}` })),
      ...byNeed().map((agent) => ({ name: agent.agent_id, about: `conversation · ${agent.attention}`, href: `#/chat/${encodeURIComponent(agent.agent_id)}` })),
      ...actions.map(([name, act]) => ({ name, about: "do it", act })),
    ];
    const hits = all.filter((entry) => words.every((word) => `${entry.name} ${entry.about}`.toLowerCase().includes(word)));
    if (text.startsWith("/")) hits.unshift({ name: text, about: "path", href: treeLink(text) });
    return hits.slice(0, 12);
  }, [text]);
  const go = (entry) => {
    own.current.close();
    if (entry.act) entry.act();
    else location.hash = entry.href;
  };
  const keys = (event) => {
    if (event.key === "ArrowDown") setChosen((at) => Math.min(found.length - 1, at + 1));
    else if (event.key === "ArrowUp") setChosen((at) => Math.max(0, at - 1));
    else if (event.key === "Enter" && found[chosen]) go(found[chosen]);
    else return;
    event.preventDefault();
  };
  return html`<dialog class="palette" ref=${own} aria-label="Jump" onClose=${onClose} onClick=${(event) => event.target === own.current && own.current.close()}>
    <input type="text" role="combobox" aria-label="Jump to" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${found[chosen] ? `palette-${chosen}` : undefined} placeholder="A panel, an agent, or a path such as /meta" value=${text} onInput=${(event) => {
      setText(event.target.value);
      setChosen(0);
    }} onKeyDown=${keys}/>
    <ul id="palette-list" role="listbox" aria-label="Places">${found.map((entry, index) => html`<li id=${`palette-${index}`} role="option" aria-selected=${index === chosen ? "true" : "false"} class=${index === chosen ? "chosen" : ""} onClick=${() => go(entry)}><span>${entry.name}</span><span class="muted">${entry.about}</span></li>`)}</ul>
  </dialog>`;
}
