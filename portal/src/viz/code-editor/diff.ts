// Two texts compared by lines. Pure.

export interface DiffLine {
  kind: "same" | "gone" | "new";
  /** From 1; of the text it is in. */
  left: number | null;
  right: number | null;
  text: string;
}

/** Beyond this many changes the middle is shown as replaced: time and memory have a bound. */
const MOST_EDITS = 2000;

export function diffLines(before: string, after: string): DiffLine[] {
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (
    tail < a.length - head &&
    tail < b.length - head &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  ) {
    tail++;
  }
  const out: DiffLine[] = [];
  const same = (i: number, k: number) =>
    out.push({ kind: "same", left: i + 1, right: k + 1, text: a[i] ?? "" });
  for (let i = 0; i < head; i++) same(i, i);
  const middleA = a.slice(head, a.length - tail);
  const middleB = b.slice(head, b.length - tail);
  for (const step of myers(middleA, middleB)) {
    const [i, k] = [step.a + head, step.b + head];
    if (step.kind === "same") same(i, k);
    else if (step.kind === "gone") {
      out.push({ kind: "gone", left: i + 1, right: null, text: a[i] ?? "" });
    } else out.push({ kind: "new", left: null, right: k + 1, text: b[k] ?? "" });
  }
  for (let i = tail; i > 0; i--) same(a.length - i, b.length - i);
  return out;
}

function split(text: string): string[] {
  if (text === "") return [];
  const lines = text.split(/\r?\n/);
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

interface Step {
  kind: "same" | "gone" | "new";
  a: number;
  b: number;
}

/** The shortest way from one to the other, by Myers. */
function myers(a: readonly string[], b: readonly string[]): Step[] {
  const [n, m] = [a.length, b.length];
  const most = Math.min(n + m, MOST_EDITS);
  const offset = most + 1;
  const furthest = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let d = 0; d <= most; d++) {
    trace.push(furthest.slice(offset - d - 1, offset + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const left = furthest[offset + k - 1] as number;
      const right = furthest[offset + k + 1] as number;
      let x = k === -d || (k !== d && left < right) ? right : left + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      furthest[offset + k] = x;
      if (x >= n && x - k >= m) return back(trace, d, n, m);
    }
  }
  return [
    ...a.map((_, i): Step => ({ kind: "gone", a: i, b: 0 })),
    ...b.map((_, i): Step => ({ kind: "new", a: n, b: i })),
  ];
}

function back(trace: readonly Int32Array[], edits: number, n: number, m: number): Step[] {
  const out: Step[] = [];
  let [x, y] = [n, m];
  for (let d = edits; d > 0; d--) {
    // Of round d, the slice begins at diagonal -d-1.
    const row = trace[d] as Int32Array;
    const at = (k: number) => row[k + d + 1] as number;
    const k = x - y;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const from = down ? k + 1 : k - 1;
    const startX = at(from);
    const startY = startX - from;
    while (x > startX && y > startY) {
      x--;
      y--;
      out.push({ kind: "same", a: x, b: y });
    }
    if (down) {
      y--;
      out.push({ kind: "new", a: x, b: y });
    } else {
      x--;
      out.push({ kind: "gone", a: x, b: y });
    }
  }
  while (x > 0 && y > 0) {
    x--;
    y--;
    out.push({ kind: "same", a: x, b: y });
  }
  return out.reverse();
}

/** A row of the comparison: what was, beside what will be; or a fold of unchanged lines. */
export type DiffRow =
  | { kind: "pair"; left: DiffLine | null; right: DiffLine | null }
  | { kind: "fold"; count: number };

/** Pairs what is gone with what is new, and folds what is far from any change. */
export function diffRows(lines: readonly DiffLine[], around: number): DiffRow[] {
  const pairs: { left: DiffLine | null; right: DiffLine | null; changed: boolean }[] = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i] as DiffLine;
    if (line.kind === "same") {
      pairs.push({ left: line, right: line, changed: false });
      i++;
      continue;
    }
    const gone: DiffLine[] = [];
    const fresh: DiffLine[] = [];
    for (; i < lines.length && lines[i]?.kind !== "same"; i++) {
      const change = lines[i] as DiffLine;
      if (change.kind === "gone") gone.push(change);
      else fresh.push(change);
    }
    for (let k = 0; k < Math.max(gone.length, fresh.length); k++) {
      pairs.push({ left: gone[k] ?? null, right: fresh[k] ?? null, changed: true });
    }
  }
  const keep = new Uint8Array(pairs.length);
  pairs.forEach((pair, at) => {
    if (pair.changed) keep.fill(1, Math.max(0, at - around), at + around + 1);
  });
  const out: DiffRow[] = [];
  for (let at = 0; at < pairs.length; at++) {
    let end = at;
    while (end < pairs.length && !keep[end]) end++;
    if (end - at > 1) {
      out.push({ kind: "fold", count: end - at });
      at = end - 1;
      continue;
    }
    const pair = pairs[at] as (typeof pairs)[number];
    out.push({ kind: "pair", left: pair.left, right: pair.right });
  }
  return out;
}

/** Of two lines, the parts between their common beginning and end. */
export function within(a: string, b: string): { start: number; endA: number; endB: number } {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let tail = 0;
  while (
    tail < a.length - start &&
    tail < b.length - start &&
    a[a.length - 1 - tail] === b[b.length - 1 - tail]
  ) {
    tail++;
  }
  return { start, endA: a.length - tail, endB: b.length - tail };
}
