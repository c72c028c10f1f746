// Health: faults, figures, and their last minutes as small plots.

import { Facts, Figure, PathLink, Refusal, html, useEffect, useRef, useState } from "../ui.js";
import { followValue } from "../follow.js";
import { at, bytes, clock, count, duration, money, parse } from "../format.js";
import { Plot } from "../plot.js";

const KEPT = 180;
const METRICS = "/meta/metrics.json";
const HEALTH = "/meta/health.json";

/** The samples of this browser, kept while other panels are shown. */
const samples = [];

function sum(object) {
  return Object.values(object ?? {}).reduce((total, value) => total + (typeof value === "number" ? value : 0), 0);
}

/** The time below which a share of the requests between two samples stayed, in microseconds. */
export function quantile(before, now, share) {
  const counts = new Map();
  for (const [kind, times] of Object.entries(now ?? {})) {
    for (const [limit, number] of Object.entries(times.below_us ?? {})) {
      const more = number - (before?.[kind]?.below_us?.[limit] ?? 0);
      const at = limit === "more" ? Infinity : Number(limit);
      counts.set(at, (counts.get(at) ?? 0) + more);
    }
  }
  const total = [...counts.values()].reduce((one, other) => one + other, 0);
  if (total <= 0) return undefined;
  let seen = 0;
  for (const [limit, number] of [...counts].sort((a, b) => a[0] - b[0])) {
    seen += number;
    if (seen >= total * share) return limit === Infinity ? undefined : limit;
  }
  return undefined;
}

/** The rate per second of a figure between samples. */
function rates(get) {
  return samples.map((sample, index) => {
    const before = samples[index - 1];
    if (!before) return undefined;
    const seconds = (sample.at - before.at) / 1000;
    const more = get(sample.metrics) - get(before.metrics);
    return seconds > 0 && more >= 0 ? more / seconds : undefined;
  });
}

export function Health() {
  const [metrics, setMetrics] = useState(samples.at(-1)?.metrics);
  const [health, setHealth] = useState(undefined);
  const [error, setError] = useState(undefined);
  const latest = useRef(metrics);
  const [, draw] = useState(0);
  useEffect(() => {
    const stops = [
      followValue(METRICS, (text) => {
        latest.current = parse(text);
        setMetrics(latest.current);
      }, setError),
      followValue(HEALTH, (text) => setHealth(parse(text)), setError),
    ];
    const timer = setInterval(() => {
      if (!latest.current) return;
      samples.push({ at: Date.now(), metrics: latest.current });
      if (samples.length > KEPT) samples.shift();
      draw((count) => count + 1);
    }, 1000);
    return () => {
      stops.forEach((stop) => stop());
      clearInterval(timer);
    };
  }, []);
  const padded = (values) => [...Array(Math.max(0, 60 - values.length)).fill(undefined), ...values];
  const rate = (value) => (value === undefined ? "–" : `${count(Math.round(value * 10) / 10)}/s`);
  const calls = rates((metrics) => sum(metrics.jobs));
  const requests = rates((metrics) => sum(metrics.requests));
  const tokens = rates((metrics) => metrics.spent?.tokens ?? 0);
  const spending = rates((metrics) => metrics.spent?.money ?? 0);
  const slow = samples.map((sample, index) => (index ? quantile(samples[index - 1].metrics.session?.requests, sample.metrics.session?.requests, 0.99) : undefined));
  const figure = (pointer, as = count) => html`<${Figure} file=${METRICS} pointer=${pointer} value=${at(metrics ?? {}, pointer)} as=${as}/>`;
  return html`<section class="health pane"><p class="title" aria-hidden="true">Health</p><${Refusal} error=${error}/>
    ${health ? html`<p class=${health.ok ? "verdict good" : "verdict bad"} role="status"><${Figure} file=${HEALTH} pointer="ok" value=${health.ok} as=${(ok) => (ok ? "All is well" : "Something is wrong")}/> · up ${duration(health.uptime_ms)} since ${clock(health.started_at_ms)}</p>` : null}
    ${health?.faults?.map((fault) => html`<p class="refusal">${fault}</p>`)}
    ${health?.mountspec?.failed ? html`<p class="refusal">The last edit of the mountspec is not in force: ${JSON.stringify(health.mountspec.faults ?? health.mountspec)}</p>` : null}
    <div class="plots">
      <${Plot} name="calls" values=${padded(calls)} shown=${rate}>${rate(calls.at(-1))}</${Plot}>
      <${Plot} name="kernel requests" values=${padded(requests)} shown=${rate}>${rate(requests.at(-1))}</${Plot}>
      <${Plot} name="99 of 100 requests within" values=${padded(slow)} shown=${(us) => (us ? `${count(us)} µs` : "–")}>${slow.at(-1) ? `${count(slow.at(-1))} µs` : "–"}</${Plot}>
      <${Plot} name="tokens" values=${padded(tokens)} shown=${rate}>${figure("spent.tokens")}</${Plot}>
      <${Plot} name="money" values=${padded(spending)} shown=${(value) => `${money(value)}/s`}>${figure("spent.money", money)}</${Plot}>
    </div>
    ${metrics ? html`<h2>Now</h2><${Facts} rows=${[
      ["agents", health?.agents?.length],
      ...Object.keys(metrics.jobs ?? {}).map((state) => [`jobs ${state}`, figure(`jobs.${state}`)]),
      ["commits", figure("commits")],
      ["refused", figure("refused")],
      ["waiting reads", figure("parked")],
      ["open files", figure("open_handles")],
      ["nodes the kernel knows", figure("inodes")],
      ["memory of open files", figure("kept_bytes", (value) => bytes(value ?? 0))],
      ["memory of results", figure("result_bytes", (value) => bytes(value ?? 0))],
    ]}/><p class="links"><${PathLink} path=${METRICS}/> · <${PathLink} path=${HEALTH}/></p>` : null}
  </section>`;
}
