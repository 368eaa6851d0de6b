// A job's attempts as segments on a line. Pure.

export type SegmentState =
  | "waiting"
  | "starting"
  | "running"
  | "saving"
  | "stopping"
  | "preempted"
  | "paused"
  | "ended";

export interface Segment {
  state: SegmentState;
  from: number;
  /** Null: it is so now. */
  to: number | null;
  /** Why it came to this, in words. */
  cause?: string | undefined;
  /** Who or what caused it: a job, a person, a policy. */
  by?: string | undefined;
  /** Already in words: "$4.20". */
  cost?: string | undefined;
  /** How it ended: the glyph of `ended` follows. */
  outcome?: "done" | "failed" | "stopped" | undefined;
}

export interface Attempt {
  number: number;
  segments: readonly Segment[];
}

export interface Placed {
  attempt: number;
  segment: Segment;
  x: number;
  width: number;
}

export interface Shown {
  glyph: string;
  word: string;
  /** Which token of state colours it. */
  tone: "running" | "waiting" | "starting" | "saving" | "preempted" | "failed" | "done" | "idle";
}

const SHOWN: Record<SegmentState, Shown> = {
  waiting: { glyph: "○", word: "waiting", tone: "waiting" },
  starting: { glyph: "◐", word: "starting", tone: "starting" },
  running: { glyph: "●", word: "running", tone: "running" },
  saving: { glyph: "◐", word: "saving", tone: "saving" },
  stopping: { glyph: "◐", word: "stopping", tone: "saving" },
  preempted: { glyph: "◆", word: "preempted", tone: "preempted" },
  paused: { glyph: "▮▮", word: "paused", tone: "idle" },
  ended: { glyph: "✓", word: "ended", tone: "done" },
};

export function shown(segment: Segment): Shown {
  if (segment.state !== "ended") return SHOWN[segment.state];
  if (segment.outcome === "failed") return { glyph: "✕", word: "failed", tone: "failed" };
  if (segment.outcome === "stopped") return { glyph: "■", word: "stopped", tone: "idle" };
  return { glyph: "✓", word: "done", tone: "done" };
}

/**
 * Segments side by side. Each gets its least pixels, taken from the long ones: a moment of saving
 * must be seen beside a day of running.
 */
export function placeSegments(
  attempts: readonly Attempt[],
  range: { from: number; to: number },
  now: number,
  width: number,
  leastOf: (segment: Segment) => number,
): Placed[] {
  const out: Placed[] = [];
  const span = range.to - range.from || 1;
  for (const attempt of attempts) {
    for (const segment of attempt.segments) {
      const from = Math.max(segment.from, range.from);
      const to = Math.min(segment.to ?? now, range.to);
      if (to < from) continue;
      out.push({
        attempt: attempt.number,
        segment,
        x: ((from - range.from) / span) * width,
        width: ((to - from) / span) * width,
      });
    }
  }
  let missing = 0;
  let spare = 0;
  for (const p of out) {
    const least = leastOf(p.segment);
    if (p.width < least) missing += least - p.width;
    else spare += p.width - least;
  }
  if (missing === 0) return out;
  const scale = spare > 0 ? Math.max(0, 1 - missing / spare) : 0;
  let shift = 0;
  for (const p of out) {
    p.x += shift;
    const least = leastOf(p.segment);
    const wide = p.width < least ? least : least + (p.width - least) * scale;
    shift += wide - p.width;
    p.width = wide;
  }
  return out;
}

export function rangeOf(attempts: readonly Attempt[], now: number): { from: number; to: number } {
  let from = Number.POSITIVE_INFINITY;
  let to = Number.NEGATIVE_INFINITY;
  for (const attempt of attempts) {
    for (const segment of attempt.segments) {
      from = Math.min(from, segment.from);
      to = Math.max(to, segment.to ?? now);
    }
  }
  if (!Number.isFinite(from)) return { from: now, to: now + 1 };
  return { from, to: to > from ? to : from + 1 };
}

/** The line in one sentence, for a table's cell. */
export function summary(attempts: readonly Attempt[], now: number, span: (ms: number) => string) {
  const sums = new Map<string, number>();
  let preempted = 0;
  for (const attempt of attempts) {
    for (const segment of attempt.segments) {
      if (segment.state === "preempted") preempted++;
      if (segment.state === "ended" || segment.state === "preempted") continue;
      const { word } = shown(segment);
      sums.set(word, (sums.get(word) ?? 0) + Math.max(0, (segment.to ?? now) - segment.from));
    }
  }
  const parts = [...sums].map(([word, ms]) => `${word} ${span(ms)}`);
  if (preempted) parts.push(`preempted ${preempted === 1 ? "once" : `${preempted} times`}`);
  const count = attempts.length === 1 ? "1 attempt" : `${attempts.length} attempts`;
  return [count, ...parts].join(", ");
}
