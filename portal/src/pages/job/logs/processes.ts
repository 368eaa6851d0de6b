// Whose output there is: a log is of one process. Pure.

import type { Job } from "@/api/types";
import { keyOf } from "../file";

export interface Process {
  task: number;
  rank: number;
  /** Its number over the whole job, as RANK has it. */
  label: string;
}

const MOST = 256;

/** The processes whose output is kept apart: those that Berth starts itself. */
export function processesOf(
  job: Pick<Job, "nodes" | "gpus_milli">,
  file: string | undefined,
): Process[] {
  const tasks = Math.max(1, job.nodes);
  const each = keyOf(file, "launch") === "ranks" ? ranksOf(job, file) : 1;
  const out: Process[] = [];
  for (let task = 0; task < tasks && out.length < MOST; task += 1)
    for (let rank = 0; rank < each && out.length < MOST; rank += 1)
      out.push({ task, rank, label: String(task * each + rank) });
  return out;
}

function ranksOf(job: Pick<Job, "nodes" | "gpus_milli">, file: string | undefined): number {
  const said = Number(keyOf(file, "ranks"));
  if (Number.isInteger(said) && said > 0) return said;
  return Math.max(1, Math.round(job.gpus_milli / 1000 / Math.max(1, job.nodes)));
}
