// Views: what an agent changed in its working copy.

import { Empty, html } from "../ui.js";

export function Views() {
  return html`<section class="pane"><h1>Views</h1><${Empty}>There is no view.</${Empty}></section>`;
}
