// What the mock says about one job. Made from what its list has of it.

const HOUR = 3_600_000;
const ms = (at) => Date.parse(at);
const iso = (at) => new Date(at).toISOString();
const ENDED = ["done", "failed", "cancelled"];

export const refOf = (job) => ({ job: job.id, name: job.name, user: job.user, team: job.team });

export function timeline(world, job) {
  const other = world.jobs.find((j) => j.state === "running" && j.id !== job.id);
  const submitted = ms(job.submitted);
  const wait = (state, from, to, more = {}) => ({
    state,
    attempt: null,
    from: iso(from),
    to: to === null ? null : iso(to),
    cause: null,
    text: null,
    by: null,
    cost_micros: 0,
    ...more,
  });
  const segments = [];
  if (!job.started)
    segments.push(wait(job.state === "paused" ? "paused" : "waiting", submitted, null));
  else {
    const started = ms(job.started);
    const ended = job.ended ? ms(job.ended) : null;
    const over = ended ?? Date.now();
    segments.push(wait("waiting", submitted, started - 20_000));
    segments.push(wait("starting", started - 20_000, started, { attempt: 0 }));
    let from = started;
    if (job.attempts > 1 && over - started > HOUR) {
      const stopped = started + (over - started) / 3;
      const cause = { cause: "reclaim", text: "made room for a team that took back its share" };
      const gave = { ...cause, by: other ? refOf(other) : null };
      const half = Math.round(job.cost_micros / 3);
      segments.push(wait("running", started, stopped, { attempt: 0, cost_micros: half }));
      segments.push(wait("saving", stopped, stopped + 30_000, { attempt: 0, ...gave }));
      segments.push(wait("preempted", stopped + 30_000, stopped + 600_000, gave));
      from = stopped + 600_000;
    }
    const number = from === started ? 0 : 1;
    const spent = segments.reduce((sum, s) => sum + s.cost_micros, 0);
    const last = { attempt: number, cost_micros: job.cost_micros - spent };
    const state = { stopping: "stopping", starting: "starting" }[job.state] ?? "running";
    segments.push(wait(job.state === "paused" ? "paused" : state, from, ended, last));
    if (ended !== null)
      segments.push(wait("ended", ended, ended, { text: job.reason ?? job.state }));
  }
  return {
    job: job.id,
    state: job.state,
    segments,
    cost_micros: segments.reduce((sum, s) => sum + s.cost_micros, 0),
    waited_ms: 60_000,
    ran_ms: job.started
      ? Math.max(0, (job.ended ? ms(job.ended) : Date.now()) - ms(job.started))
      : 0,
    exit: job.exit,
    notes: [],
  };
}

export function attempts(job) {
  if (!job.started) return [];
  const price = Math.max(1, Math.round((job.gpus_milli / 1000) * 2_490_000));
  const nodes = job.on.length > 0 ? job.on : ["n01"];
  return [
    {
      number: Math.max(0, job.attempts - 1),
      opened: iso(ms(job.started) - 20_000),
      started: job.started,
      closed: job.ended,
      exit: job.exit,
      cost_micros: job.cost_micros,
      leases: nodes.map((node, task) => ({
        id: `${job.id}/${task}#${Math.max(0, job.attempts - 1)}`,
        task,
        node,
        gpus: [0, 1, 2, 3, 4, 5, 6, 7].slice(0, Math.max(1, Math.min(8, job.gpus_milli / 1000))),
        gpus_milli: job.gpus_milli,
        price_micros_per_hour: price,
        opened: iso(ms(job.started) - 20_000),
        started: job.started,
        closed: job.ended,
        exit: null,
        cost_micros: job.cost_micros,
      })),
    },
  ];
}

export function atRisk(job) {
  return {
    ...refOf(job),
    gpus_milli: job.gpus_milli,
    nodes: job.on,
    lost_ms: 660_000,
    lost_micros: Math.round(((job.price_micros_per_hour ?? 0) * 660_000) / HOUR),
    last_checkpoint: iso(Date.now() - 660_000),
    may_save: true,
    restarts: true,
    restarts_at: iso(Date.now() + HOUR),
    restarts_at_p90: iso(Date.now() + 3 * HOUR),
    runs_on: false,
  };
}

export function stopPreview(world, job) {
  const waits = world.jobs.filter((j) => j.state === "pending").slice(0, 2);
  return {
    ...atRisk(job),
    restarts: false,
    restarts_at: null,
    restarts_at_p90: null,
    cost_micros: job.cost_micros,
    saves_micros: Math.round((job.price_micros_per_hour ?? 0) * 2),
    // Of a job that one may not read only its team is told.
    starts: waits.map((j, i) => (i === 0 ? refOf(j) : { ...refOf(j), name: null, user: null })),
  };
}

export function why(job) {
  const waits = job.state === "pending";
  return {
    id: job.id,
    name: job.name,
    state: job.state,
    since_ms: Date.now() - ms(job.submitted),
    queue: job.team,
    position: job.position,
    waiting: 14,
    eta: waits ? { p50: job.eta, p90: job.eta_p90, age_ms: 4000 } : null,
    needs: job.asks,
    blockers: waits
      ? [
          { code: "no-fit", text: job.reason, binding: true },
          { code: "quota", text: `queue ${job.team} uses all of its quota`, binding: false },
        ]
      : [],
    clears: null,
    also: [`${job.team} uses 40 of its quota of 48 GPUs`],
    sooner: waits
      ? [
          {
            change: "with priority high",
            starts: iso(Date.now() + 600_000),
            stops: 1,
            command: `berth set ${job.id} priority=high`,
            set: { priority: "high" },
            price_micros_per_hour: 19_920_000,
            total_micros: 119_520_000,
          },
          {
            change: "on A100 GPUs",
            starts: null,
            stops: 0,
            command: `berth clone ${job.id} --gpus A100:8`,
            clone: { file: "gpus: A100:8\n", resume: false },
            price_micros_per_hour: 9_960_000,
            total_micros: 99_600_000,
          },
          { change: "without having to lie in one rack", starts: null, stops: 0, command: null },
        ]
      : [],
  };
}

export const file = (job) =>
  `name: ${JSON.stringify(job.name)}\nteam: ${job.team}\ngpus: ${job.gpus_milli / 1000}\ntime: 12h\ncheckpoint: {path: ckpt, every: 30m}\nrun: python train.py\n`;

const line = (n) => `step ${n} loss=${(4 / Math.sqrt(n + 1)).toFixed(4)} lr=3e-4`;
const LINES = 600;

/** One chunk on each line, as the log of a job is told. */
export function log(job, query) {
  const attempt = Number(query.get("attempt") ?? Math.max(0, job.attempts - 1));
  const [task, rank] = [Number(query.get("task") ?? 0), Number(query.get("rank") ?? 0)];
  const chunk = (text, position, end) => ({
    attempt,
    task,
    rank,
    stream: "output",
    position,
    at: text ? job.started : null,
    text,
    dropped: 0,
    end,
  });
  if (!job.started || Number(query.get("from") ?? 0) > 0) return "";
  const text = Array.from({ length: LINES }, (_, n) => `${line(n)}\n`).join("");
  return [chunk(text, 0, false), chunk("", text.length, ENDED.includes(job.state))]
    .map((c) => `${JSON.stringify(c)}\n`)
    .join("");
}

/** The first answer finds nothing: it has looked at a part of the log only. */
export function logSearch(job, query) {
  const part = query.get("cursor") ? 1 : 0;
  const text = query.get("text") ?? "";
  const test = query.get("regex") === "true" ? new RegExp(text, "i") : undefined;
  const all = job.started ? Array.from({ length: LINES }, (_, n) => line(n)) : [];
  const found = all.flatMap((words, n) =>
    (test ? test.test(words) : words.includes(text))
      ? [
          {
            attempt: Math.max(0, job.attempts - 1),
            task: 0,
            rank: 0,
            line: n,
            position: n * 32,
            at: job.started,
            text: words,
          },
        ]
      : [],
  );
  return {
    matches: part === 0 ? [] : found.slice(0, Number(query.get("limit") ?? 100)),
    total: part === 0 ? 0 : found.length,
    complete: part === 1,
    next: part === 0 ? "0.0.0.33554432.9000.0" : null,
    looked_at_bytes: 33_554_432,
  };
}

export function files(job, query) {
  const path = (query.get("path") ?? "").replace(/^\/+|\/+$/g, "");
  const entry = (name, kind, bytes) => ({ name, kind, bytes, modified_at: job.started });
  return {
    job: job.id,
    path,
    entries: path
      ? [entry("step-2000.pt", "file", 1.4e9), entry("step-4000.pt", "file", 1.4e9)]
      : [
          entry("ckpt", "dir", 0),
          entry("latest", "link", 12),
          entry("metrics.csv", "file", 48_211),
          entry("run.sock", "other", 0),
        ],
    more: path !== "",
  };
}

export function figures(job) {
  const to = Date.now();
  const step = 60_000;
  const times = Array.from({ length: 60 }, (_, i) => to - (60 - i) * step);
  const made = (figure, unit, of) => {
    const values = times.map((_, i) => of(i));
    const max = Math.max(...values);
    return { figure, unit, mean: max, p95: max, max, last: values.at(-1), values, largest: values };
  };
  const summary = { mfu: 412, energy_joules: 9_000_000, idle_ms: 120_000, idle_at_end_ms: 0 };
  const tasks = attempts(job).flatMap((a) =>
    a.leases.map((lease) => ({
      task: lease.task,
      attempt: a.number,
      node: lease.node,
      from: lease.opened,
      to: lease.closed,
      times_ms: times,
      figures: [
        made("cpu", "millicores", (i) => 4000 + i * 30),
        made("memory", "MiB", (i) => 20_000 + i * 100),
      ],
      gpus: lease.gpus.map((gpu) => ({
        node: lease.node,
        gpu,
        model: "H100",
        uuid: null,
        milli: 1000,
        times_ms: times,
        figures: [
          made("utilization", "thousandths", (i) => 800 + ((i * 7 + gpu) % 20) * 10),
          made("gpu_memory", "MiB", (i) => 60_000 + i * 20),
          made("power", "mW", (i) => 520_000 + (i % 9) * 8000),
        ],
        summary,
      })),
    })),
  );
  return {
    job: job.id,
    from: iso(to - HOUR),
    to: iso(to),
    step_ms: step,
    tasks,
    summary,
    advice: [],
    notes: [],
  };
}
