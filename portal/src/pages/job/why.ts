// What the panel "Why it waits" says, from the answer of the API. Pure.

import type { JobChange, JobClone, Sooner, Why } from "@/api/types";
import { clock, millis } from "@/lib/format";
import type { Changes } from "./file";
import { clears } from "./reasons";

/** What a choice does when it is applied. */
export type Deed =
  | { kind: "set"; change: JobChange }
  | { kind: "resume" }
  /** A change that a waiting job cannot take: it is submitted anew with it, and the old one stopped. */
  | { kind: "replace"; keys: Changes; clone?: JobClone }
  /** For somebody else, or elsewhere; it is shown and has no button. */
  | { kind: "advice" };

export interface Choice {
  id: string;
  /** `Priority high`, as the button says it. */
  label: string;
  deed: Deed;
  /** None: at once. */
  starts: number | undefined;
  stops: number;
  command: string | undefined;
  /** What it would come to, where the server says so. */
  total: number | undefined;
}

export interface Reason {
  code: string;
  sentence: string;
  clears: string | undefined;
}

export interface WhyModel {
  main: Reason | undefined;
  others: Reason[];
  p50: number | undefined;
  p90: number | undefined;
  /** It is forecast, and starts later than can be seen. */
  beyond: boolean;
  choices: Choice[];
}

export function whyModel(why: Why, now: number): WhyModel {
  const reasons = why.blockers.map((b) => ({
    binding: b.binding,
    code: b.code,
    sentence: sentence(b.text, now),
    clears: clears(b.code),
  }));
  const main = reasons.find((r) => r.binding) ?? reasons[0];
  const p50 = millis(why.eta?.p50);
  return {
    main,
    others: reasons.filter((r) => r !== main),
    p50,
    p90: millis(why.eta?.p90),
    beyond: Boolean(why.eta) && p50 === undefined,
    choices: why.sooner.map((s, i) => {
      const deed = saidDeed(s) ?? deedOf(s.change);
      return {
        id: `${i}-${s.change}`,
        label: labelOf(s.change, deed),
        deed,
        starts: millis(s.starts),
        stops: s.stops,
        command: s.command ?? undefined,
        total: s.total_micros ?? undefined,
      };
    }),
  };
}

const STAMP = /\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g;

/** From when on GPUs are reserved for it, if they are. */
export function promisedAt(why: Why): number | undefined {
  const text = why.blockers.find((b) => b.code === "reserved")?.text ?? "";
  return millis(text.match(STAMP)?.[0]);
}

/** Times as the reader's clock has them. */
export function localTimes(text: string, now: number): string {
  return text.replace(STAMP, (at) => clock(at, now));
}

/** A reason as a sentence, with the reader's times. */
export function sentence(text: string, now: number): string {
  const local = localTimes(text, now).trim();
  if (local === "") return "";
  const first = local.charAt(0).toUpperCase() + local.slice(1);
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

/** The server says the request itself, where one of the job or of a copy makes the change. */
function saidDeed(s: Sooner): Deed | undefined {
  if (s.set) {
    const change: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(s.set)) if (value !== null) change[key] = value;
    if (change.hold === false && Object.keys(change).length === 1) return { kind: "resume" };
    return { kind: "set", change: change as JobChange };
  }
  if (!s.clone) return undefined;
  const keys: Changes = {};
  for (const line of (s.clone.file ?? "").split("\n")) {
    const [, key, value] = /^([a-z]+): ?(.*)$/.exec(line) ?? [];
    if (key) keys[key] = value === "null" ? undefined : value;
  }
  return { kind: "replace", keys, clone: s.clone };
}

/** Of some changes the server has only words; a copy with another key is the same. */
export function deedOf(change: string): Deed {
  for (const [pattern, keys] of IN_WORDS) {
    const found = pattern.exec(change);
    if (found) return { kind: "replace", keys: keys(found[1] ?? "") };
  }
  return { kind: "advice" };
}

const IN_WORDS: [RegExp, (value: string) => Changes][] = [
  [/^without the jobs it comes after$/, () => ({ after: undefined })],
  [/^without its begin time$/, () => ({ begin: undefined })],
  [/^as a job that may be stopped$/, () => ({ preemptible: "true" })],
  [/^on spot machines$/, () => ({ spot: "only" })],
  [/^on on-demand machines$/, () => ({ spot: "never" })],
  [/^without having to lie in one \S+$/, () => ({ place: "any" })],
  [/^with (0\.\d+) of a GPU instead of a whole one$/, (part) => ({ gpus: part })],
];

function labelOf(change: string, deed: Deed): string {
  if (deed.kind === "resume") return "Release it";
  if (deed.kind === "set") {
    const { priority, time, team } = deed.change;
    if (priority) return `Priority ${priority}`;
    if (time) return `Time limit ${time}`;
    if (team) return `Queue ${team}`;
  }
  return change.charAt(0).toUpperCase() + change.slice(1);
}

/**
 * Fewer GPUs, where that many are free at once. The server proposes changes that keep the size of a
 * job; a smaller one often starts now, and its price can be asked for.
 */
export function fewerGpus(
  why: Why,
  gpus: string | undefined,
): { gpus: string; n: number } | undefined {
  const text = why.blockers.find((b) => b.code === "no-fit")?.text ?? "";
  const free = Number(
    /^it asks for \d+ GPUs; (\d+) that would suit (?:is|are) free/.exec(text)?.[1],
  );
  const [, model, asked] = /^([A-Za-z][^:,[\]]*:)?(\d+)$/.exec(gpus ?? "") ?? [];
  if (!free || !asked || Number(asked) <= free) return undefined;
  return { gpus: `${model ?? ""}${free}`, n: free };
}

/** What a change comes to for the job: each key with the old value and the new one. */
export function linesOf(
  deed: Deed,
  old: (key: string) => string | undefined,
): { key: string; from: string; to: string }[] {
  const pairs: [string, unknown][] =
    deed.kind === "set"
      ? Object.entries(deed.change)
      : deed.kind === "replace"
        ? Object.entries(deed.keys)
        : deed.kind === "resume"
          ? [["hold", "false"]]
          : [];
  return pairs.map(([key, value]) => ({
    key,
    from: old(key) ?? (deed.kind === "resume" ? "true" : DEFAULTS[key]) ?? "not set",
    to: value === undefined || value === null ? "not set" : String(value),
  }));
}

const DEFAULTS: Record<string, string> = {
  priority: "normal",
  nodes: "1",
  place: "any",
  spot: "auto",
  preemptible: "true",
};
