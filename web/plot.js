// Small plots: a line over the last minutes. The figure beside a plot stands in a file; the plot is its history on this page.

import { html } from "./vendor/htm-preact.js";

const WIDTH = 240;
const HEIGHT = 44;

/** The points of a line as a path. Pure. */
export function path(values, width = WIDTH, height = HEIGHT) {
  const known = values.filter((value) => value !== undefined);
  if (known.length < 2) return "";
  const most = Math.max(...known, 1e-9);
  const step = width / (values.length - 1);
  let pen = "M";
  let line = "";
  values.forEach((value, at) => {
    if (value === undefined) return void (pen = "M");
    line += `${pen}${(at * step).toFixed(1)} ${(height - 2 - (value / most) * (height - 6)).toFixed(1)}`;
    pen = "L";
  });
  return line;
}

export function Plot({ name, values, shown, children }) {
  const known = values.filter((value) => value !== undefined);
  const most = known.length ? Math.max(...known) : 0;
  const line = path(values);
  const first = line ? line.slice(1, line.indexOf(" ")) : "0";
  return html`<figure class="plot"><figcaption><span>${name}</span><b>${children}</b></figcaption><svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${name}: at most ${shown(most)} in the last minutes`}>${line ? html`<path class="area" d=${`${line}L${WIDTH} ${HEIGHT}L${first} ${HEIGHT}Z`}/>` : null}<path class="line" d=${line}/></svg><span class="most muted">${shown(most)}</span></figure>`;
}
