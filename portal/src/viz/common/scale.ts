// Scales, ticks and searches in sorted numbers. Pure.

export interface Scale {
  from: number;
  to: number;
  start: number;
  end: number;
}

export function toPixel(scale: Scale, value: number): number {
  const span = scale.to - scale.from || 1;
  return scale.start + ((value - scale.from) / span) * (scale.end - scale.start);
}

export function toValue(scale: Scale, pixel: number): number {
  const span = scale.end - scale.start || 1;
  return scale.from + ((pixel - scale.start) / span) * (scale.to - scale.from);
}

/** The first index whose value is not below `value`. */
export function lowerBound(sorted: ArrayLike<number>, value: number, count = sorted.length) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first index whose value is above `value`. */
export function upperBound(sorted: ArrayLike<number>, value: number, count = sorted.length) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The index of the value nearest to `value`. */
export function nearest(sorted: ArrayLike<number>, value: number): number {
  const after = lowerBound(sorted, value);
  if (after === 0) return 0;
  if (after >= sorted.length) return sorted.length - 1;
  const before = sorted[after - 1] as number;
  return value - before <= (sorted[after] as number) - value ? after - 1 : after;
}

/** A round step so that `from` to `to` has at most `most` lines. */
export function niceStep(span: number, most: number): number {
  if (!(span > 0)) return 1;
  const rough = span / Math.max(1, most - 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  for (const factor of [1, 2, 2.5, 5, 10]) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

/** Round numbers from at or below `from` to at or above `to`: at most `most` of them. */
export function niceTicks(from: number, to: number, most = 5): number[] {
  if (!(to > from)) return [from];
  let step = niceStep(to - from, most);
  for (let round = 0; round < 8; round++) {
    const first = Math.floor(from / step + 1e-9);
    const last = Math.ceil(to / step - 1e-9);
    if (last - first + 1 <= most) {
      return Array.from({ length: last - first + 1 }, (_, i) => clean((first + i) * step));
    }
    step = niceStep(step * most, most);
  }
  return [from, to];
}

function clean(value: number): number {
  return Number.parseFloat(value.toPrecision(12));
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const STEPS = [
  SECOND,
  5 * SECOND,
  15 * SECOND,
  30 * SECOND,
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
  30 * DAY,
  90 * DAY,
  365 * DAY,
];

export interface TimeTicks {
  step: number;
  at: number[];
}

/** Round local times in a range: at most `most`. */
export function timeTicks(from: number, to: number, most: number): TimeTicks {
  const span = to - from;
  if (!(span > 0) || most < 1) return { step: MINUTE, at: [] };
  const step =
    STEPS.find((s) => span / s <= most) ?? 365 * DAY * Math.ceil(span / (365 * DAY * most));
  const at: number[] = [];
  if (step < DAY) {
    const shift = new Date(from).getTimezoneOffset() * MINUTE;
    for (let t = Math.ceil((from - shift) / step) * step + shift; t <= to; t += step) at.push(t);
  } else {
    // Days by the calendar, as clocks change.
    const days = Math.round(step / DAY);
    const day = new Date(from);
    day.setHours(0, 0, 0, 0);
    if (day.getTime() < from) day.setDate(day.getDate() + 1);
    while (day.getTime() <= to) {
      at.push(day.getTime());
      day.setDate(day.getDate() + days);
    }
  }
  return { step, at };
}

const pad = (n: number) => String(n).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** A tick's text: times within a day, the day where one begins. */
export function tickText(at: number, step: number): string {
  const d = new Date(at);
  if (step >= 365 * DAY) return String(d.getFullYear());
  if (step >= DAY) return `${d.getDate()} ${MONTHS[d.getMonth()]}`;
  if (d.getHours() === 0 && d.getMinutes() === 0 && d.getSeconds() === 0) {
    return `${DAYS[d.getDay()]} ${d.getDate()}`;
  }
  const short = `${pad(d.getHours())}:${pad(d.getMinutes())}`;
  return step < MINUTE ? `${short}:${pad(d.getSeconds())}` : short;
}

/** A moment in full, for tooltips and readouts. */
export function momentText(at: number, withSeconds = false): string {
  const d = new Date(at);
  const time = `${pad(d.getHours())}:${pad(d.getMinutes())}${withSeconds ? `:${pad(d.getSeconds())}` : ""}`;
  return `${DAYS[d.getDay()]} ${d.getDate()} ${MONTHS[d.getMonth()]} ${time}`;
}

export function dayText(at: number): string {
  const d = new Date(at);
  return `${DAYS[d.getDay()]} ${d.getDate()} ${MONTHS[d.getMonth()]}`;
}

/** 42 s, 7 min, 3 h 12 min, 2 d 4 h. */
export function spanText(ms: number): string {
  const s = Math.max(0, Math.round(ms / SECOND));
  if (s < 60) return `${s} s`;
  const m = Math.round(s / 60);
  if (m < 60) return `${m} min`;
  if (m < 24 * 60) return m % 60 ? `${Math.floor(m / 60)} h ${m % 60} min` : `${m / 60} h`;
  const h = Math.round(m / 60);
  return h % 24 ? `${Math.floor(h / 24)} d ${h % 24} h` : `${h / 24} d`;
}

export const clamp = (value: number, low: number, high: number) =>
  Math.min(Math.max(value, low), high);

/** Places labels near their wishes, `gap` apart and inside; null where there is no room. */
export function spread(
  wishes: number[],
  gap: number,
  top: number,
  bottom: number,
): number[] | null {
  const n = wishes.length;
  if (n === 0) return [];
  if ((n - 1) * gap > bottom - top) return null;
  const order = wishes
    .map((_, i) => i)
    .sort((a, b) => (wishes[a] as number) - (wishes[b] as number));
  const out = new Array<number>(n);
  let last = top - gap;
  for (const i of order) {
    last = Math.max(clamp(wishes[i] as number, top, bottom), last + gap);
    out[i] = last;
  }
  let next = bottom + gap;
  for (const i of order.reverse()) {
    next = Math.min(out[i] as number, next - gap);
    out[i] = next;
  }
  return out;
}
