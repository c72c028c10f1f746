// The page: a frame with the panels, the keyboard, and what is said when the host or the session is gone.

import { render } from "./vendor/htm-preact.js";
import { html, useEffect, useRef, useState } from "./ui.js";
import { begin, store, useStore } from "./agents.js";
import { onState } from "./follow.js";
import { logOut, onSessionEnd } from "./fs.js";
import { Needs } from "./panels/needs.js";
import { Agents } from "./panels/agents.js";
import { Chat } from "./panels/chat.js";
import { Tree } from "./panels/tree.js";
import { Jobs } from "./panels/jobs.js";
import { Events } from "./panels/events.js";
import { Memory } from "./panels/memory.js";
import { Approvals } from "./panels/approvals.js";
import { Views } from "./panels/views.js";
import { Health } from "./panels/health.js";
import { Audit } from "./panels/audit.js";
import { Palette } from "./palette.js";

/** The panels: their word in the address, the key after `g`, and when they are there. */
export const PANELS = [
  { word: "needs", name: "Who needs me", key: "n", icon: "M12 3a6 6 0 0 1 6 6c0 5 2 6 2 6H4s2-1 2-6a6 6 0 0 1 6-6Zm-2 16a2 2 0 0 0 4 0", view: Needs },
  { word: "agents", name: "Agents", key: "a", icon: "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8ZM4 21c0-4 3.5-6 8-6s8 2 8 6", view: Agents },
  { word: "chat", name: "Conversation", key: "c", icon: "M4 5h16v11H9l-5 4V5Z", view: Chat },
  { word: "approvals", name: "Approvals", key: "p", icon: "M5 12l4 4 10-10", view: Approvals, there: () => store.approvals },
  { word: "views", name: "Views", key: "v", icon: "M5 4v16M5 12h6a4 4 0 0 0 4-4V4M15 12v8", view: Views, there: () => store.views },
  { word: "jobs", name: "Jobs", key: "j", icon: "M4 6h16M4 12h10M4 18h6", view: Jobs },
  { word: "events", name: "Events", key: "e", icon: "M3 12h4l3-8 4 16 3-8h4", view: Events },
  { word: "memory", name: "Memory", key: "m", icon: "M6 3h9l4 4v14H6V3Zm3 8h7M9 15h7M9 7h3", view: Memory },
  { word: "tree", name: "Tree", key: "t", icon: "M3 6h7l2 3h9v10H3V6Z", view: Tree },
  { word: "health", name: "Health", key: "h", icon: "M12 20s-8-5-8-11a4.5 4.5 0 0 1 8-2.8A4.5 4.5 0 0 1 20 9c0 6-8 11-8 11Z", view: Health, there: () => store.operator },
  { word: "audit", name: "Audit", key: "u", icon: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6l8-3Z", view: Audit, there: () => store.operator },
];

export function shownPanels() {
  return PANELS.filter((panel) => !panel.there || panel.there());
}

function place() {
  const [, word = "needs", ...rest] = location.hash.slice(1).split("?")[0].split("/");
  const decode = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { word: PANELS.some((panel) => panel.word === word) ? word : "needs", rest: rest.map(decode) };
}

const HELP = [
  ["g then a letter", "go to a panel (the letters stand beside them)"],
  ["/", "filter the list"],
  ["↑ ↓ or j k, Enter", "move in a list, open"],
  ["Esc", "back"],
  ["i", "write to the agent, in a conversation"],
  [". or Ctrl K", "jump to an agent, a panel or a path"],
  ["t", "light, dark, or as the system"],
  ["?", "this list"],
];

function Page() {
  const [at, setAt] = useState(place());
  const [state, setState] = useState("connecting");
  const [over, setOver] = useState(false);
  const [overlay, setOverlay] = useState(null);
  useStore();
  useEffect(() => {
    const moved = () => setAt(place());
    addEventListener("hashchange", moved);
    const stops = [onState(setState), onSessionEnd(() => setOver(true)), keyboard(setOverlay)];
    begin();
    return () => {
      removeEventListener("hashchange", moved);
      stops.forEach((stop) => stop());
    };
  }, []);
  const panel = PANELS.find((panel) => panel.word === at.word);
  useEffect(() => {
    document.title = `${panel.name} · Acheron`;
  }, [panel]);
  return html`
    <a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.getElementById("main").focus();
    }}>Skip to the panel</a>
    <header class="top"><a class="brand" href="#/needs"><img src="/web/icon.svg" alt="" width="22" height="22"/>Acheron</a>
      <span class="grow"></span>
      <${Connection} state=${state} over=${over}/>
      <button class="plain" onClick=${() => setOverlay("palette")} title="Jump (.)">Jump<kbd aria-hidden="true">.</kbd></button>
      <button class="plain wide-only" onClick=${() => setOverlay("help")} title="Keys (?)">Keys<kbd aria-hidden="true">?</kbd></button>
      <button class="plain wide-only" onClick=${theme} title="Light, dark, or as the system (t)">Theme</button>
      <button class="plain wide-only" onClick=${() => logOut().finally(() => setOver(true))}>Log out</button>
    </header>
    <nav class="panels" aria-label="Panels"><ul>${shownPanels().map((other) => html`<li><a href=${`#/${other.word}`} aria-current=${other.word === at.word ? "page" : undefined}><svg viewBox="0 0 24 24" aria-hidden="true"><path d=${other.icon}/></svg><span>${other.name}</span><${Badge} word=${other.word}/><kbd aria-hidden="true">g ${other.key}</kbd></a></li>`)}</ul></nav>
    <main id="main" tabindex="-1" aria-label=${panel.name}><h1 class="hidden">${panel.name}</h1>${over ? html`<${Over}/>` : html`<${panel.view} rest=${at.rest}/>`}</main>
    ${overlay === "help" ? html`<${Help} onClose=${() => setOverlay(null)}/>` : null}
    ${overlay === "palette" ? html`<${Palette} panels=${shownPanels()} actions=${[["Theme: light, dark, or as the system", theme], ["Keys", () => setTimeout(() => setOverlay("help"))], ["Log out", () => logOut().finally(() => setOver(true))]]} onClose=${() => setOverlay(null)}/>` : null}`;
}

/** How many agents wait for somebody. */
function Badge({ word }) {
  if (word !== "needs") return null;
  const count = [...store.agents.values()].filter((agent) => ["approval", "blocked", "stalled"].includes(agent.attention)).length;
  return count ? html`<span class="badge" aria-label=${`${count} need you`}>${count}</span>` : null;
}

function Connection({ state, over }) {
  const word = over ? "logged out" : state;
  return html`<span class=${`connection ${word.replace(" ", "-")}`} role="status"><span aria-hidden="true">●</span> ${{ live: "live", lost: "reconnecting…", connecting: "connecting…" }[word] ?? word}</span>`;
}

function Over() {
  return html`<section class="over"><h2>This login has ended</h2><p>Run <code>acheron open</code> on the machine of the host: it prints an address that logs this browser in, once.</p></section>`;
}

function Help({ onClose }) {
  return html`<${Dialog} label="Keys" onClose=${onClose}><h2>Keys</h2><dl class="keys">${HELP.map(([keys, says]) => html`<div><dt><kbd>${keys}</kbd></dt><dd>${says}</dd></div>`)}</dl></${Dialog}>`;
}

export function Dialog({ label, onClose, children }) {
  const own = useRef(null);
  useEffect(() => {
    own.current.showModal();
  }, []);
  return html`<dialog ref=${own} aria-label=${label} onClose=${onClose} onClick=${(event) => event.target === own.current && own.current.close()}>${children}</dialog>`;
}

const THEMES = ["system", "light", "dark"];

function theme() {
  const now = document.documentElement.dataset.theme ?? "system";
  setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
}

function setTheme(word) {
  if (THEMES.includes(word)) document.documentElement.dataset.theme = word;
  try {
    localStorage.setItem("acheron-theme", word);
  } catch {
    // a browser that keeps nothing
  }
}

function keyboard(setOverlay) {
  let going = false;
  const pressed = (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable], dialog[open]");
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      return setOverlay("palette");
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      if (typing && !event.target.closest("dialog[open]")) event.target.blur();
      else if (!typing) document.querySelector(".split.open .back")?.click();
      return;
    }
    if (typing) return;
    if (going) {
      going = false;
      event.stopPropagation();
      const panel = shownPanels().find((panel) => panel.key === event.key);
      if (panel) {
        event.preventDefault();
        location.hash = `#/${panel.word}`;
        setTimeout(() => document.querySelector("main [data-rows]")?.focus(), 50);
      }
      return;
    }
    const act = {
      g: () => (going = true),
      "?": () => setOverlay("help"),
      ".": () => setOverlay("palette"),
      t: theme,
      "/": () => document.querySelector("main [data-filter]")?.focus(),
      i: () => document.querySelector("main [data-composer]")?.focus(),
      j: () => document.querySelector("main [data-rows]")?.focus(),
      ArrowDown: () => document.querySelector("main [data-rows]")?.focus(),
    }[event.key];
    // Where something has the focus already, moving is its own.
    if (!act || (["j", "ArrowDown"].includes(event.key) && !["BODY", "MAIN"].includes(document.activeElement.tagName))) return;
    if (event.key !== "g") event.preventDefault();
    act();
  };
  // Before the lists, which have keys of their own.
  addEventListener("keydown", pressed, true);
  return () => removeEventListener("keydown", pressed, true);
}

try {
  setTheme(localStorage.getItem("acheron-theme") ?? "system");
} catch {
  // a browser that keeps nothing
}
render(html`<${Page}/>`, document.getElementById("page"));
