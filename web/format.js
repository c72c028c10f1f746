// Values as people read them. Pure.

export function ago(ms, now = Date.now()) {
  if (!ms) return "never";
  const seconds = Math.max(0, Math.round((now - ms) / 1000));
  if (seconds < 5) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function clock(ms) {
  if (!ms) return "";
  const date = new Date(ms);
  const two = (number) => String(number).padStart(2, "0");
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const today = new Date();
  return date.toDateString() === today.toDateString() ? time : `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h ${Math.floor((ms % 3_600_000) / 60_000)} min`;
  return `${Math.floor(ms / 86_400_000)} d ${Math.floor((ms % 86_400_000) / 3_600_000)} h`;
}

export function bytes(count) {
  if (count < 1024) return `${count} B`;
  if (count < 1 << 20) return `${(count / 1024).toFixed(count < 10240 ? 1 : 0)} KB`;
  if (count < 2 ** 30) return `${(count / (1 << 20)).toFixed(1)} MB`;
  return `${(count / 2 ** 30).toFixed(1)} GB`;
}

/** A count in few characters: 950, 12.3k, 4.5M. */
export function count(number) {
  if (number === null || number === undefined) return "–";
  if (number < 1000) return Number.isInteger(number) ? String(number) : number.toFixed(1);
  if (number < 100_000) return `${(number / 1000).toFixed(1)}k`;
  if (number < 1_000_000) return `${Math.round(number / 1000)}k`;
  return `${(number / 1_000_000).toFixed(1)}M`;
}

export function money(amount) {
  if (!amount) return "0";
  return amount < 0.01 ? amount.toFixed(4) : amount < 100 ? amount.toFixed(2) : Math.round(amount).toString();
}

export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/** One line of a text, for lists. */
export function oneLine(text, most = 200) {
  const line = (text ?? "").slice(0, 4 * most).replace(/\*\*|`|^#+ /g, "").replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** The value at a pointer such as `spent.money`. */
export function at(value, pointer) {
  return pointer.split(".").reduce((part, key) => part?.[key], value);
}

export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The objects of lines; what is none is left out. */
export function objects(lines) {
  return lines.map(parse).filter((value) => value !== undefined);
}
