import type { Gpu, Node } from "@/api/types";

/** A model with what of it is free, held and broken. */
export interface Model {
  model: string;
  total: number;
  free: number;
  broken: number;
}

export function byModel(gpus: readonly Gpu[]): Model[] {
  const out = new Map<string, Model>();
  for (const g of gpus) {
    const m = out.get(g.model) ?? { model: g.model, total: 0, free: 0, broken: 0 };
    m.total += 1;
    if (isBroken(g)) m.broken += 1;
    else m.free += g.free_milli / 1000;
    out.set(g.model, m);
  }
  return [...out.values()].sort((a, b) => b.total - a.total || a.model.localeCompare(b.model));
}

const isBroken = (g: Gpu) => !g.healthy || Boolean(g.failed) || Boolean(g.held);

/** A node or a GPU that does not do what it should, and why. */
export interface Trouble {
  node: string;
  gpu: number | undefined;
  state: string;
  text: string;
}

export function troubleOf(nodes: readonly Node[], gpus: readonly Gpu[]): Trouble[] {
  const out: Trouble[] = [];
  for (const n of nodes)
    if (n.state !== "ready")
      out.push({
        node: n.name,
        gpu: undefined,
        state: n.state,
        text: n.trouble ?? WORDS[n.state] ?? "",
      });
  const down = new Set(nodes.filter((n) => n.state === "failed").map((n) => n.name));
  for (const g of gpus)
    if (!down.has(g.node) && isBroken(g))
      out.push({
        node: g.node,
        gpu: g.index,
        state: g.failed || !g.healthy ? "failed" : "troubled",
        text: g.failed ?? (g.held ? `held by ${g.held}` : "it is not healthy"),
      });
  return out.sort(
    (a, b) => rank(a) - rank(b) || a.node.localeCompare(b.node, "en", { numeric: true }),
  );
}

const rank = (t: Trouble) =>
  ["failed", "troubled", "leaving", "draining", "cordoned"].indexOf(t.state);

const WORDS: Record<string, string> = {
  cordoned: "it takes no new work",
  draining: "it takes no work, and what runs there moves",
  leaving: "it goes away soon",
  failed: "it does not answer",
};

/** Jobs that hold whole GPUs of which none computes. */
export interface Held {
  job: string;
  name: string;
  team: string;
  gpus: number;
  /** Micros an hour. */
  rate: number;
}

export function heldIdle(gpus: readonly Gpu[], teams: ReadonlySet<string>): Held[] {
  const out = new Map<string, Held>();
  const busy = new Set<string>();
  for (const g of gpus)
    for (const h of g.holders) {
      if (!teams.has(h.team)) continue;
      if (g.utilization === null || g.utilization === undefined || g.utilization > 1) {
        busy.add(h.job);
        continue;
      }
      const one = out.get(h.job) ?? { job: h.job, name: h.name, team: h.team, gpus: 0, rate: 0 };
      one.gpus += 1;
      one.rate += Math.round((g.price_micros_per_hour * h.milli) / 1000);
      out.set(h.job, one);
    }
  return [...out.values()].filter((h) => !busy.has(h.job)).sort((a, b) => b.rate - a.rate);
}

/** The array of an element: `17` of `17_3`. */
export function arrayOf(job: string): string {
  return job.replace(/_\d+$/, "");
}

/** One entry for the elements of an array, in the place of its first. */
export function grouped<T extends { id: string }>(
  jobs: readonly T[],
): { job: T; elements: number }[] {
  const out = new Map<string, { job: T; elements: number }>();
  for (const job of jobs) {
    const known = out.get(arrayOf(job.id));
    if (known) known.elements += 1;
    else out.set(arrayOf(job.id), { job, elements: 1 });
  }
  return [...out.values()];
}
