import type { Budget, Queue, Share } from "@/api/types";

/** A queue with what its share says, in the tree of tenants. */
export interface Row {
  name: string;
  parent: string | undefined;
  /** From 1, as `aria-level` counts. */
  level: number;
  children: string[];
  quota: number;
  used: number;
  fair: number;
  borrowed: number;
  lent: number;
  demand: number;
  weight: number;
  credits_gpu_s: number;
  /** Of itself and all below it. */
  running: number;
  waiting: number;
  wait_p50_ms: number | undefined;
  wait_p90_ms: number | undefined;
  overcommitted: boolean;
  text: string;
  budget: Budget | undefined;
}

/** Parents before their children, children by name. Milli-GPUs become GPUs. */
export function rowsOf(
  queues: readonly Queue[],
  shares: readonly Share[],
  budgets: readonly Budget[],
): Row[] {
  const share = new Map(shares.map((s) => [s.queue, s]));
  const budget = new Map(budgets.map((b) => [b.queue, b]));
  const names = new Set(queues.map((q) => q.name));
  const below = new Map<string | undefined, Queue[]>();
  for (const q of queues) {
    // One whose parent may not be seen stands at the top.
    const parent = q.parent && names.has(q.parent) ? q.parent : undefined;
    below.set(parent, [...(below.get(parent) ?? []), q]);
  }
  const out: Row[] = [];
  const add = (q: Queue, parent: string | undefined, level: number): Row => {
    const s = share.get(q.name);
    const children = [...(below.get(q.name) ?? [])].sort(byName);
    const row: Row = {
      name: q.name,
      parent,
      level,
      children: children.map((c) => c.name),
      quota: q.quota_milli / 1000,
      used: q.used_milli / 1000,
      fair: q.fair_share_milli / 1000,
      borrowed: (s?.borrowed_milli ?? Math.max(0, q.used_milli - q.quota_milli)) / 1000,
      lent: (s?.lent_milli ?? 0) / 1000,
      demand: (s?.demand_milli ?? q.used_milli) / 1000,
      weight: (s?.weight_milli ?? 1000) / 1000,
      credits_gpu_s: s?.credits_gpu_s ?? 0,
      running: q.running,
      waiting: q.waiting,
      wait_p50_ms: q.wait_p50_ms ?? undefined,
      wait_p90_ms: q.wait_p90_ms ?? undefined,
      overcommitted: q.overcommitted,
      text: s?.text ?? "",
      budget: budget.get(q.name),
    };
    out.push(row);
    for (const child of children) {
      const made = add(child, q.name, level + 1);
      row.running += made.running;
      row.waiting += made.waiting;
    }
    return row;
  };
  for (const q of [...(below.get(undefined) ?? [])].sort(byName)) add(q, undefined, 1);
  return out;
}

const byName = (a: Queue, b: Queue) => a.name.localeCompare(b.name, "en", { numeric: true });

/** Rows whose parents are all open. */
export function shown(rows: readonly Row[], closed: ReadonlySet<string>): Row[] {
  const hidden = new Set<string>();
  return rows.filter((row) => {
    if (row.parent !== undefined && (closed.has(row.parent) || hidden.has(row.parent))) {
      hidden.add(row.name);
      return false;
    }
    return true;
  });
}

/** A queue and all below it. */
export function within(rows: readonly Row[], name: string): Set<string> {
  const out = new Set([name]);
  for (const row of rows) if (row.parent !== undefined && out.has(row.parent)) out.add(row.name);
  return out;
}

/** What one bar's whole width stands for, so that all of them compare. */
export function widest(rows: readonly Row[]): number {
  return Math.max(1, ...rows.map((r) => Math.max(r.quota, r.used, r.fair)));
}
