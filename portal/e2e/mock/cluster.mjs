// What the mock says about leases, figures and money.

import { atRisk, refOf } from "./jobs.mjs";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const iso = (at) => new Date(at).toISOString();

export function leases(world, query) {
  const to = Date.now();
  const from = Date.parse(query.get("from") ?? iso(to - DAY));
  const held = world.jobs
    .filter((job) => job.started && Date.parse(job.ended ?? iso(to)) > from)
    .map((job, i) => ({
      ...refOf(job),
      id: `${job.id}/0#0`,
      task: 0,
      attempt: 0,
      node: job.on[0] ?? world.nodes[i % world.nodes.length]?.name ?? "n01",
      gpus: [0],
      gpus_milli: job.gpus_milli,
      state: job.ended ? "ended" : job.state === "stopping" ? "stopping" : "running",
      from: job.started,
      started: job.started,
      to: job.ended,
      expected_to: job.ended ? null : iso(to + 2 * HOUR),
      at_most_to: job.ended ? null : iso(to + 12 * HOUR),
      end_reason: job.ended ? job.state : null,
      price_micros_per_hour: 2_490_000,
    }));
  const waits = world.jobs.filter((job) => job.state === "pending").slice(0, 3);
  return {
    from: iso(from),
    to: iso(to),
    leases: held,
    promised: waits.map((job, i) => ({
      ...refOf(job),
      ...(i === 2 && { name: null, user: null }),
      from: iso(to + (i + 1) * HOUR),
      to: iso(to + (i + 5) * HOUR),
      firm: i === 0,
      places: [{ task: 0, node: world.nodes[i]?.name ?? "n01", gpus: [0, 1, 2, 3] }],
    })),
    reserved: [
      {
        name: "maintenance",
        owner: "infra",
        nodes: world.nodes.slice(30).map((n) => n.name),
        from: iso(to + 6 * HOUR),
        to: iso(to + 9 * HOUR),
      },
    ],
    more: false,
  };
}

/** Names and units as crates/berth-figures has them. */
const FIGURES = {
  utilization: ["thousandths", 1000],
  gpu_memory: ["MiB", 80_000],
  power: ["mW", 700_000],
  temperature: ["celsius", 90],
};

export function gpuFigures(world, query) {
  const figure = query.get("figure") ?? "utilization";
  const known = FIGURES[figure];
  if (!known) return undefined;
  const to = Date.now();
  const from = Date.parse(query.get("from") ?? iso(to - HOUR));
  const step = Math.max(5000, Math.round((to - from) / 120));
  const [unit, most] = known;
  return {
    figure,
    unit,
    from: iso(from),
    to: iso(from + 120 * step),
    step_ms: step,
    rows: world.gpus.map((gpu, row) => ({
      node: gpu.node,
      gpu: gpu.index,
      values: Array.from({ length: 120 }, (_, i) =>
        (row + i) % 97 === 0
          ? null
          : Math.round(most * (0.5 + 0.5 * Math.sin((row + i) / 13) ** 2)),
      ),
    })),
    left_out: 0,
    notes: [],
  };
}

export function drainPreview(world, node) {
  const here = world.jobs.filter((job) => job.on.includes(node)).slice(0, 4);
  const stops = here.map((job, i) =>
    i === 1
      ? {
          ...atRisk(job),
          restarts: false,
          restarts_at: null,
          runs_on: true,
          lost_ms: 0,
          lost_micros: 0,
        }
      : atRisk(job),
  );
  return {
    node,
    stops,
    lost_micros: stops.reduce((sum, s) => sum + s.lost_micros, 0),
    gpus_milli: 2000,
    empty_at: here.length > 1 ? iso(Date.now() + 3 * HOUR) : null,
    promised: world.jobs
      .filter((job) => job.state === "pending")
      .slice(0, 1)
      .map(refOf),
  };
}

function within(query) {
  const now = new Date();
  const month = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  return {
    from: Date.parse(query.get("from") ?? iso(month)),
    to: Date.parse(query.get("to") ?? iso(now)),
  };
}

function spent(world, query) {
  const filters = ["team", "project", "experiment", "user"].filter((key) => query.get(key));
  return world.jobs.filter(
    (job) => job.cost_micros > 0 && filters.every((key) => job[key] === query.get(key)),
  );
}

function sums(jobs, by) {
  const out = new Map();
  for (const job of jobs) {
    const key = by === "job" ? job.id : job[by];
    const one = out.get(key) ?? { [by]: key, amount_micros: 0, gpu_ms: 0, jobs: 0 };
    one.amount_micros += job.cost_micros;
    one.gpu_ms += Math.round((job.cost_micros / 2_490_000) * HOUR);
    one.jobs += 1;
    out.set(key, one);
  }
  return [...out.values()].sort((a, b) => b.amount_micros - a.amount_micros);
}

const total = (rows) => rows.reduce((sum, row) => sum + row.amount_micros, 0);

export function cost(world, query) {
  const { from, to } = within(query);
  const by = (query.get("by") ?? "team").split(",");
  const rows = sums(spent(world, query), by[0]);
  return {
    by,
    from: iso(from),
    to: iso(to),
    rows,
    total_micros: total(rows),
    idle_micros: query.get("team") ? 0 : Math.round(total(rows) / 9),
    carbon_intensity: null,
  };
}

export function costSeries(world, query) {
  const { from, to } = within(query);
  const by = query.get("by") ?? "team";
  const rows = sums(spent(world, query), by);
  const top = rows.slice(0, Number(query.get("top") ?? 12));
  const days = Math.max(1, Math.ceil((to - from) / DAY));
  return {
    by,
    step: query.get("step") ?? "day",
    from: iso(from),
    to: iso(to),
    keys: top.map((row) => row[by]),
    points: Array.from({ length: days }, (_, day) => ({
      at: iso(from + day * DAY),
      amounts: Object.fromEntries(
        top.map((row, i) => [
          row[by],
          Math.round((row.amount_micros / days) * (1 + ((day + i) % 3) / 5)),
        ]),
      ),
      others_micros: Math.round(total(rows.slice(top.length)) / days),
      idle_micros: query.get("team") ? 0 : Math.round(total(rows) / days / 9),
    })),
    total_micros: total(rows),
  };
}

export function costRows(world, query) {
  const limit = Number(query.get("limit") ?? 100);
  const at = Number(query.get("cursor") || 0);
  const jobs = spent(world, query).filter((j) => !query.get("job") || j.id === query.get("job"));
  return {
    rows: jobs.slice(at, at + limit).map((job) => ({
      from: job.started,
      to: job.ended ?? iso(Date.now()),
      kind: "used",
      node: job.on[0] ?? "n01",
      job: job.id,
      task: 0,
      attempt: 0,
      team: job.team,
      project: job.project,
      experiment: job.experiment,
      user: job.user,
      gpus_milli: job.gpus_milli,
      amount_micros: job.cost_micros,
    })),
    next: at + limit < jobs.length ? String(at + limit) : null,
    notes: [],
  };
}

/** Undefined: that is more time than the server tells causes apart for. */
export function costIdle(world, query) {
  const { from, to } = within(query);
  if (to - from > 62 * DAY) return undefined;
  const team = query.get("team");
  const all = total(sums(spent(world, query), "team"));
  const cause = (name, text, share, billed) => ({
    cause: name,
    text,
    amount_micros: Math.round(all * share),
    gpu_ms: Math.round(((all * share) / 2_490_000) * HOUR),
    billed,
  });
  return {
    from: iso(from),
    to: iso(to),
    teams: team ? [team] : [],
    causes: [
      ...(team
        ? []
        : [
            cause("unallocated", "no job had it", 0.06, false),
            cause("fragmented", "free, and of no use to the requests there are", 0.02, false),
          ]),
      cause("starting", "a job had it, and its tasks did not run yet", 0.01, true),
      cause("held_idle", "a job had it and computed less than 1 % of the time", 0.04, true),
      cause("lost_failed", "attempts that failed, with what they had saved", 0.02, true),
      cause("lost_machine", "attempts that went with their machine, likewise", 0, true),
    ],
    holders: world.jobs
      .filter((job) => job.state === "running" && (!team || job.team === team))
      .slice(0, 4)
      .map((job, i) => ({ ...refOf(job), amount_micros: 48_000_000 / (i + 1), gpu_ms: 4 * HOUR })),
    total_micros: all,
    notes: team ? ["the cost of idle GPUs is in no team's bill"] : [],
  };
}

const LIMIT = 45_000e6;

/** `once` has no period. */
export function budgets() {
  const now = new Date();
  const from = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1);
  const to = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
  const one = (queue, per, action, share) => ({
    queue,
    limit_micros: LIMIT,
    spent_micros: LIMIT * share,
    per,
    action,
    thresholds_milli: [800],
    period_from: per === "once" ? null : iso(from),
    period_to: per === "once" ? null : iso(to),
    forecast_micros: per === "once" ? null : LIMIT * share * 1.4,
  });
  return [one("nlp", "month", "block", 0.83), one("vision", "once", "notify", 0.4)];
}

export function forecast(queue) {
  const budget = budgets().find((b) => b.queue === queue);
  if (!budget) return undefined;
  const now = Date.now();
  const from = budget.period_from ? Date.parse(budget.period_from) : now - 14 * DAY;
  const until = budget.period_to ? Date.parse(budget.period_to) : now + 30 * DAY;
  const rate = budget.spent_micros / Math.max(DAY, now - from);
  const days = Math.ceil((until - now) / DAY);
  const out = now + (budget.limit_micros - budget.spent_micros) / rate;
  return {
    queue,
    limit_micros: budget.limit_micros,
    spent_micros: budget.spent_micros,
    period_from: budget.period_from,
    period_to: budget.period_to,
    points: [
      { at: iso(from), spent_micros: 0 },
      { at: iso((from + now) / 2), spent_micros: Math.round(budget.spent_micros * 0.4) },
      { at: iso(now), spent_micros: budget.spent_micros },
    ],
    forecast: Array.from({ length: days + 1 }, (_, day) => {
      const at = Math.min(now + day * DAY, until);
      const p50 = Math.round(budget.spent_micros + rate * (at - now));
      return { at: iso(at), p50_micros: p50, p90_micros: Math.round(p50 * (1 + day / 100)) };
    }),
    runs_out_at: out < until ? iso(out) : null,
    runs_out_at_p90: out < until ? iso(now + (out - now) * 0.8) : null,
    days: 14,
  };
}

export function shares(world) {
  return world.queues.map((queue) => ({
    queue: queue.name,
    parent: queue.parent,
    quota_milli: queue.quota_milli,
    weight_milli: 1000,
    fair_share_milli: queue.fair_share_milli,
    used_milli: queue.used_milli,
    demand_milli: queue.used_milli + 8000,
    borrowed_milli: Math.max(0, queue.used_milli - queue.quota_milli),
    lent_milli: 0,
    credits_gpu_s: 0,
    past_use_gpu_s: 100_000,
    text: `${queue.name} is promised ${queue.quota_milli / 1000} GPUs.`,
  }));
}
