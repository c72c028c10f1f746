// Approvals: what waits for a decision. (Made when the files are there.)

import { Empty, html } from "../ui.js";

export function Approvals() {
  return html`<section class="pane"><h1>Approvals</h1><${Empty}>Nothing waits.</${Empty}></section>`;
}
