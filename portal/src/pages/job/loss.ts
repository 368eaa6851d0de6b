// What is lost when a job is stopped or paused. Pure.

import type { Job, StopPreview } from "@/api/types";
import { gpus, millis, money, span } from "@/lib/format";
import { FINAL, HOLDS } from "./project";
import { refText } from "./routes";

export interface Loss {
  what: string;
  amount?: string | undefined;
}

export type Verb = "stop" | "pause" | "now";

/**
 * A line for each thing that is lost; a job that holds nothing loses its place in line. Without a
 * preview, which is still on its way or of an array, the most that can be lost is told.
 */
export function lossOf(job: Job, verb: Verb, now: number, preview?: StopPreview): Loss[] {
  if (FINAL.has(job.state)) return [];
  if (!HOLDS.has(job.state)) {
    if (verb === "pause") return [{ what: "It does not start until it is resumed." }];
    const cost = job.cost_micros > 0 ? money(job.cost_micros) : undefined;
    return [
      { what: "Its place in line" },
      ...(cost ? [{ what: "What it cost so far", amount: cost }] : []),
    ];
  }
  const out: Loss[] = [];
  const since = sinceSaved(job, now, preview);
  if (preview) {
    out.push({
      what:
        typeof preview.last_checkpoint === "string"
          ? `Work of ${span(preview.lost_ms)} since the last checkpoint`
          : `All it computed, ${span(preview.lost_ms)}: it has no checkpoint`,
      amount: money(preview.lost_micros),
    });
    if (preview.may_save && verb !== "now")
      out.push({ what: "Berth asks it to save first; then less is lost." });
  } else
    out.push({
      what: `Unless it saved: at most the work of ${span(since)} since this attempt began`,
      amount: money(atRisk(job, now)),
    });
  if (verb === "stop")
    out.push({ what: "It is cancelled for good; a clone can go on from its checkpoint." });
  if (verb === "pause")
    out.push({ what: `${heldWords(job)} for others; it waits again when resumed.` });
  if (verb === "now") out.push({ what: "It gets no time to save." });
  if (preview && preview.starts.length > 0)
    out.push({ what: `Then start: ${preview.starts.slice(0, 5).map(refText).join(", ")}` });
  return out;
}

function heldWords(job: Job): string {
  return job.gpus_milli > 0
    ? `Its ${gpus(job.gpus_milli)} GPUs become free`
    : "Its place becomes free";
}

/** How long it has computed since it last saved, in milliseconds: at most since it started. */
export function sinceSaved(job: Job, now: number, preview?: StopPreview): number {
  if (preview) return preview.lost_ms;
  const started = millis(job.started);
  return started === undefined ? 0 : Math.max(0, now - started);
}

/** What computing anew would cost, in millionths of a dollar. */
export function atRisk(job: Job, now: number, preview?: StopPreview): number {
  if (preview) return preview.lost_micros;
  const price = job.price_micros_per_hour ?? 0;
  const bound = (price * sinceSaved(job, now)) / 3_600_000;
  return Math.round(price > 0 ? Math.min(bound, Math.max(bound, 0)) : 0);
}

/** The same for many jobs at once, for a bulk action. */
export function lossOfAll(
  jobs: readonly Job[],
  verb: Verb,
  now: number,
  previews: ReadonlyMap<string, StopPreview>,
): Loss[] {
  const running = jobs.filter((j) => HOLDS.has(j.state));
  const waiting = jobs.filter((j) => !HOLDS.has(j.state) && !FINAL.has(j.state));
  const out: Loss[] = [];
  if (running.length > 0) {
    const risk = running.reduce((sum, j) => sum + atRisk(j, now, previews.get(j.id)), 0);
    const oldest = Math.max(...running.map((j) => sinceSaved(j, now, previews.get(j.id))));
    const exact = running.every((j) => previews.has(j.id));
    const one = running.length === 1;
    const since = exact
      ? one
        ? "its last checkpoint"
        : "their last checkpoints"
      : one
        ? "it last saved, at most since it started"
        : "they last saved, at most since they started";
    out.push({
      what: `Work of ${one ? "1 running job" : `${running.length} running jobs`} since ${since}; ${span(oldest)}${one ? "" : " for the oldest"}`,
      amount: `${exact ? "" : "≤ "}${money(risk)}`,
    });
    const milli = running.reduce((sum, j) => sum + j.gpus_milli, 0);
    if (milli > 0) out.push({ what: "GPUs become free", amount: gpus(milli) });
  }
  if (waiting.length > 0)
    out.push({
      what:
        verb === "pause"
          ? `${waiting.length === 1 ? "1 waiting job does" : `${waiting.length} waiting jobs do`} not start until resumed`
          : `${waiting.length === 1 ? "1 waiting job loses its" : `${waiting.length} waiting jobs lose their`} place in line`,
    });
  return out;
}
