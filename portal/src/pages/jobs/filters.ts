// From the address to what the API is asked, and to the command that asks the same. Pure.

import type { JobsFilter } from "@/api/queries";
import { lengthOf } from "../job/file";
import type { JobsSearch } from "./search";

export type Filtered = JobsSearch & { team?: string | undefined };

/** States as chips; several may hold at once. `active` of the address stands for the first ones. */
export const STATES = [
  "pending",
  "starting",
  "running",
  "stopping",
  "paused",
  "done",
  "failed",
  "cancelled",
] as const;
/** Those that have a chip of their own; the others pass too quickly to look for. */
export const CHIPS = ["running", "pending", "paused", "done", "failed", "cancelled"] as const;
const ACTIVE = ["pending", "starting", "running", "stopping", "paused"];

/** Which chips hold. None means all. */
export function statesOf(search: Pick<JobsSearch, "state">): string[] {
  const given = search.state ?? [];
  const out = new Set(given.flatMap((s) => (s === "active" ? ACTIVE : [s])));
  return STATES.filter((s) => out.has(s));
}

/** A click on a chip: it joins those that hold, or leaves them. */
export function toggled(search: Pick<JobsSearch, "state">, state: string): string[] | undefined {
  const now = statesOf(search);
  const group = state === "running" ? ["starting", "running", "stopping"] : [state];
  const on = now.includes(state);
  const next = STATES.filter((s) => (group.includes(s) ? !on : now.includes(s)));
  return next.length === 0 || next.length === STATES.length ? undefined : next;
}

/** How many a chip stands for. */
export function countOf(counts: Readonly<Record<string, number>>, state: string): number {
  const of = (s: string) => counts[s] ?? 0;
  return state === "running" ? of("starting") + of("running") + of("stopping") : of(state);
}

export function totalOf(
  counts: Readonly<Record<string, number>> | undefined,
  search: Pick<JobsSearch, "state">,
): number | undefined {
  if (!counts) return undefined;
  const states = statesOf(search);
  const all = states.length > 0 ? states : STATES;
  return all.reduce((n, s) => n + (counts[s] ?? 0), 0);
}

/** `7d` and `2026-11-01T00:00:00Z` as a time; rounded, so that a list is not another one each second. */
export function sinceOf(since: string | undefined, now: number): string | undefined {
  if (!since) return undefined;
  const length = lengthOf(since);
  if (length !== undefined) {
    const at = now - length;
    return new Date(at - (at % 60_000)).toISOString();
  }
  const at = Date.parse(since);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

export function asked(search: Filtered, now: number): JobsFilter {
  const states = statesOf(search);
  return {
    state: states.length > 0 ? states.join(",") : undefined,
    team: search.team,
    user: search.user,
    project: search.project,
    experiment: search.experiment,
    text: search.q,
    since: sinceOf(search.since, now),
    sort: search.sort,
    figures: true,
  };
}

/** The flags of `berth ps` that give the same rows. */
export function flags(search: Filtered, me: string | undefined) {
  const states = statesOf(search);
  const mine = search.user !== undefined && search.user === me;
  return {
    "--all": states.length === 0 || states.some((s) => !ACTIVE.includes(s)),
    "--mine": mine,
    "--user": mine ? undefined : search.user,
    "--team": search.team,
    "--project": search.project,
    "--experiment": search.experiment,
    "--state": states,
    "--since": search.since,
  };
}
