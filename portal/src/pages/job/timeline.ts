// The timeline of a job as segments on a line, attempt by attempt. Pure.

import type { Timeline } from "@/api/types";
import { millis, money } from "@/lib/format";
import type { Attempt as Drawn, Segment } from "@/viz/timeline/Timeline";
import { refText } from "./routes";

const OUTCOME: Record<string, Segment["outcome"]> = {
  done: "done",
  failed: "failed",
  cancelled: "stopped",
};

/** A wait belongs to the attempt that comes after it, as the line has it. */
export function drawnOf(timeline: Timeline): Drawn[] {
  const out: { number: number; segments: Segment[] }[] = [];
  let ahead: Segment[] = [];
  for (const s of timeline.segments) {
    const from = millis(s.from);
    if (from === undefined) continue;
    const segment: Segment = {
      state: s.state,
      from,
      to: millis(s.to) ?? null,
      cause: s.text ?? s.cause ?? undefined,
      by: s.by ? refText(s.by) : undefined,
      cost: s.cost_micros > 0 ? money(s.cost_micros) : undefined,
      outcome: s.state === "ended" ? OUTCOME[timeline.state] : undefined,
    };
    const last = out.at(-1);
    if (s.attempt === null || s.attempt === undefined) {
      // The end of a job stands with what it ends.
      if (s.state === "ended" && last && ahead.length === 0) last.segments.push(segment);
      else ahead.push(segment);
    } else if (last?.number === s.attempt) {
      last.segments.push(...ahead, segment);
      ahead = [];
    } else {
      out.push({ number: s.attempt, segments: [...ahead, segment] });
      ahead = [];
    }
  }
  if (ahead.length > 0) out.push({ number: (out.at(-1)?.number ?? -1) + 1, segments: ahead });
  return out;
}

export interface Happening {
  at: number;
  state: string;
  text: string;
  /** The job or person that caused it. */
  by?: string | undefined;
  attempt?: number | undefined;
}

const TOLD: Record<Segment["state"], string> = {
  waiting: "Waits in line",
  starting: "Has its GPUs, and starts",
  running: "Runs its command",
  saving: "Saves",
  stopping: "Stops",
  preempted: "Was preempted",
  paused: "Is paused",
  ended: "Ended",
};

/** What happened to a job, newest first, from its line. */
export function happenings(line: readonly Drawn[]): Happening[] {
  const out: Happening[] = [];
  for (const a of line) {
    for (const s of a.segments) {
      out.push({
        at: s.from,
        state:
          s.state === "ended"
            ? s.outcome === "stopped"
              ? "cancelled"
              : (s.outcome ?? "ended")
            : s.state,
        text: s.cause ? `${TOLD[s.state]}: ${s.cause}` : TOLD[s.state],
        by: s.by,
        attempt: a.number,
      });
    }
  }
  return out.reverse();
}

/** The id of a job at the beginning of what the server says about who did it: `13 goes-first`. */
export function jobIn(text: string | undefined): string | undefined {
  return /^(?:job )?(\d+(?:_\d+)?)(?:\s|$)/.exec(text ?? "")?.[1];
}
