/**
 * Numbers as people read them. The API speaks in whole units (millionths of a dollar, thousandths of a
 * GPU, milliseconds, bytes); this is the one place where they become text.
 */

export const NONE = "–";

const MINUS = "−";
const NBSP = "\u00a0";

/** `1240500000` → `$1,240.50`. Below a cent up to four places; from $100,000 on whole dollars. */
export function money(micros: number | null | undefined, opts: { short?: boolean } = {}): string {
  if (micros === null || micros === undefined) return NONE;
  const sign = micros < 0 ? MINUS : "";
  const abs = Math.abs(micros) / 1e6;
  if (opts.short) {
    if (abs >= 999_500) return `${sign}$${trim(abs / 1e6, 2)}M`;
    if (abs >= 9_995 || (abs >= 1000 && abs % 100 === 0)) return `${sign}$${trim(abs / 1e3, 1)}k`;
    if (Number.isInteger(abs)) return `${sign}$${grouped(abs, 0)}`;
  }
  if (abs > 0 && abs < 0.01) return `${sign}$${abs < 0.0001 ? "0.0001" : abs.toFixed(4)}`;
  const places = abs >= 100_000 ? 0 : 2;
  return `${sign}$${grouped(abs, places)}`;
}

/** Thousandths of a GPU: `8000` → `8`, `500` → `0.5`. */
export function gpus(milli: number | null | undefined): string {
  if (milli === null || milli === undefined) return NONE;
  return grouped(milli / 1000, 3).replace(/\.?0+$/, "") || "0";
}

export function count(n: number | null | undefined, places = 0): string {
  if (n === null || n === undefined) return NONE;
  return grouped(n, places);
}

/** Percent with its sign set off by a narrow space. */
export function percent(n: number | null | undefined, places = 0): string {
  if (n === null || n === undefined || Number.isNaN(n)) return NONE;
  return `${grouped(n, places)}${NBSP}%`;
}

const BYTES = ["B", "KB", "MB", "GB", "TB", "PB"] as const;

/** Powers of 1,000, as the job file writes sizes. */
export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return NONE;
  let value = Math.abs(n);
  let unit = 0;
  while (value >= 999.5 && unit < BYTES.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const text = unit === 0 ? String(Math.round(value)) : trim(value, value >= 100 ? 0 : 1);
  return `${n < 0 ? MINUS : ""}${text}${NBSP}${BYTES[unit]}`;
}

const UNITS: [number, string][] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1000, "s"],
];

/** A length of time in at most two units: `3 d 4 h`, `2 h 05 m`, `14 m`, `8 s`. */
export function span(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return NONE;
  const abs = Math.abs(ms);
  const sign = ms < 0 ? MINUS : "";
  if (abs < 1000)
    return abs === 0 ? "0 s".replace(" ", NBSP) : `${sign}${Math.round(abs)}${NBSP}ms`;
  for (let i = 0; i < UNITS.length; i += 1) {
    const [size, unit] = UNITS[i] as [number, string];
    if (abs < size) continue;
    const next = UNITS[i + 1];
    const whole = Math.floor(abs / size);
    // Seconds beside minutes only where they still matter.
    if (!next || (unit === "m" && whole >= 10)) return `${sign}${whole}${NBSP}${unit}`;
    const rest = Math.floor((abs % size) / next[0]);
    return rest === 0
      ? `${sign}${whole}${NBSP}${unit}`
      : `${sign}${whole}${NBSP}${unit} ${String(rest)}${NBSP}${next[1]}`;
  }
  return NONE;
}

/** `in 12 m`, `3 h 10 m ago`, `now`. */
export function relative(at: string | number | Date | null | undefined, now = Date.now()): string {
  const t = millis(at);
  if (t === undefined) return NONE;
  const diff = t - now;
  if (Math.abs(diff) < 5000) return "now";
  return diff > 0 ? `in ${span(coarse(diff))}` : `${span(coarse(-diff))} ago`;
}

/** The shortest that is not ambiguous: time today, weekday this week, date otherwise. Local time. */
export function clock(at: string | number | Date | null | undefined, now = Date.now()): string {
  const t = millis(at);
  if (t === undefined) return NONE;
  const d = new Date(t);
  const hm = `${two(d.getHours())}:${two(d.getMinutes())}`;
  const today = new Date(now);
  if (d.toDateString() === today.toDateString()) return hm;
  if (Math.abs(t - now) < 6 * 86_400_000) return `${DAYS[d.getDay()]} ${hm}`;
  const date = `${d.getDate()} ${MONTHS[d.getMonth()]}`;
  return d.getFullYear() === today.getFullYear() ? `${date} ${hm}` : `${date} ${d.getFullYear()}`;
}

/** For tooltips: date, time with seconds, and the zone. */
export function absolute(at: string | number | Date | null | undefined): string {
  const t = millis(at);
  if (t === undefined) return NONE;
  const d = new Date(t);
  const offset = -d.getTimezoneOffset();
  const zone =
    offset === 0
      ? "UTC"
      : `UTC${offset > 0 ? "+" : MINUS}${Math.floor(Math.abs(offset) / 60)}${
          offset % 60 ? `:${two(Math.abs(offset) % 60)}` : ""
        }`;
  return `${DAYS[d.getDay()]} ${d.getDate()} ${MONTHS[d.getMonth()]} ${d.getFullYear()}, ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())} ${zone}`;
}

export function millis(at: string | number | Date | null | undefined): number | undefined {
  if (at === null || at === undefined || at === "") return undefined;
  const t = typeof at === "number" ? at : at instanceof Date ? at.getTime() : Date.parse(at);
  return Number.isNaN(t) ? undefined : t;
}

/** `1 job`, `2 jobs`. */
export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** `1st`, `2nd`, `11th`. */
export function ordinal(n: number): string {
  const tens = n % 100;
  const suffix =
    tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][Math.min(n % 10, 4)] ?? "th");
  return `${count(n)}${suffix}`;
}

const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

function two(n: number): string {
  return String(n).padStart(2, "0");
}

/** Whole minutes beyond a minute, whole hours beyond two days: what one would say. */
function coarse(ms: number): number {
  if (ms >= 2 * 86_400_000) return ms - (ms % 86_400_000);
  if (ms >= 60_000) return ms - (ms % 60_000);
  return ms;
}

function trim(n: number, places: number): string {
  return n.toFixed(places).replace(/\.0+$/, "");
}

const formats = new Map<number, Intl.NumberFormat>();
function grouped(n: number, places: number): string {
  let f = formats.get(places);
  if (!f) {
    f = new Intl.NumberFormat("en-US", {
      minimumFractionDigits: places,
      maximumFractionDigits: places,
    });
    formats.set(places, f);
  }
  return f.format(n).replace("-", MINUS);
}
