/** A made-up cluster with the same faces each time: the seed says which. */
export function make({ jobs: n = 400, seed = 7 } = {}) {
  let s = seed;
  const rnd = () => {
    s = (s * 1664525 + 1013904223) >>> 0;
    return s / 2 ** 32;
  };
  const pick = (list) => list[Math.floor(rnd() * list.length)];
  const now = Date.now();
  const iso = (ms) => new Date(ms).toISOString();
  const teams = ["nlp", "vision", "speech", "rl", "infra", "bio"];
  const users = ["kim", "lee", "ada", "noor", "m.lindqvist", "chen", "olu", "s.rao"];
  const bases = [
    "llama-70b",
    "vit-l",
    "sft",
    "eval",
    "whisper-ft",
    "rlhf-abl",
    "dpo",
    "tokenizer",
    "protein-fold",
    "moe-8x7b",
  ];
  const states = [
    "running",
    "running",
    "running",
    "pending",
    "pending",
    "done",
    "done",
    "done",
    "failed",
    "cancelled",
    "starting",
    "paused",
    "stopping",
  ];
  const odd = [
    "an-experiment-whose-name-is-eighty-characters-long-so-that-somebody-has-to-cut-it",
    "<script>alert(1)</script>",
    "تدريب-النموذج",
  ];
  const jobs = [];
  for (let i = 0; i < n; i += 1) {
    const id = String(4800 - i);
    const state = i < 4 ? states[i] : pick(states);
    const gpus = pick([1, 1, 2, 4, 8, 8, 16, 32, 64]);
    const submitted = now - i * 7 * 60_000 - rnd() * 300_000;
    const live = ["running", "stopping"].includes(state);
    const ended = ["done", "failed", "cancelled"].includes(state);
    const price = gpus * 2_490_000;
    const hours = rnd() * 30;
    jobs.push({
      id,
      name: odd[i - 5] ?? `${pick(bases)}-${i % 37}`,
      kind: "job",
      state,
      user: pick(users),
      team: pick(teams),
      project: "default",
      experiment: pick(["base", "sft-mix-v3", "ablate"]),
      priority: pick([50, 50, 50, 100]),
      nodes: Math.max(1, gpus / 8),
      gpus_milli: gpus === 1 && rnd() < 0.3 ? 500 : gpus * 1000,
      asks: gpus > 8 ? `${gpus / 8} x H100:8` : `H100:${gpus}`,
      submitted: iso(submitted),
      started: state === "pending" ? null : iso(submitted + 60_000),
      ended: ended ? iso(Math.min(now, submitted + hours * 3_600_000)) : null,
      attempts: state === "pending" ? 0 : 1 + Math.floor(rnd() * 3),
      cost_micros: state === "pending" ? 0 : Math.round(price * hours),
      price_micros_per_hour: live ? price : null,
      eta: state === "pending" ? iso(now + (i % 50) * 180_000) : null,
      ...(state === "pending" && {
        eta_p90: iso(now + (i % 50) * 180_000 + 1_800_000),
      }),
      ...(!ended && { projected_micros: Math.round(price * (hours + 2)) }),
      ...(live && {
        utilization: Array.from({ length: 30 }, (_, m) => (m % 11 === 3 ? null : 700 + m * 8)),
      }),
      position: state === "pending" ? 1 + Math.floor(rnd() * 20) : null,
      reason:
        state === "pending"
          ? "it asks for 32 GPUs; 19 are free, but not together"
          : state === "failed"
            ? "exit code 137: out of memory"
            : null,
      reason_code: state === "pending" ? "no-fit" : null,
      exit: null,
      on: live ? [`n${String(1 + (i % 32)).padStart(2, "0")}`] : [],
      ready: false,
      declared: false,
      labels: {},
      tags: [],
    });
  }
  const nodes = Array.from({ length: 32 }, (_, i) => ({
    name: `n${String(i + 1).padStart(2, "0")}`,
    state: i === 7 ? "failed" : i === 12 ? "draining" : "ready",
    labels: { rack: `r${1 + Math.floor(i / 8)}` },
    gpus: { H100: 8 },
    gpus_milli: 8000,
    free_milli: rnd() < 0.3 ? 3000 : 0,
    price_micros_per_hour: 19_920_000,
    jobs: [],
    cgroup: true,
    declared: false,
  }));
  const running = jobs.filter((j) => j.state === "running");
  const gpus = nodes.flatMap((node) =>
    Array.from({ length: 8 }, (_, index) => {
      const job = rnd() < 0.85 ? pick(running) : undefined;
      return {
        node: node.name,
        index,
        model: "H100",
        memory_bytes: 80e9,
        declared: false,
        healthy: node.state !== "failed",
        free_milli: job ? 0 : 1000,
        holders: job
          ? [
              {
                job: job.id,
                name: job.name,
                user: job.user,
                team: job.team,
                since: job.started,
                milli: 1000,
                share: "whole",
              },
            ]
          : [],
        price_micros_per_hour: 2_490_000,
        ...(job && index === 5 && { idle_ms: 1_500_000 }),
        utilization: job ? Math.floor(rnd() * 60 + 40) : 0,
        used_bytes: job ? Math.floor(rnd() * 80e9) : 0,
        watts: job ? 400 + Math.floor(rnd() * 300) : 70,
        celsius: 40 + Math.floor(rnd() * 40),
      };
    }),
  );
  const queues = teams.map((name) => ({
    name,
    parent: null,
    quota_milli: 48_000,
    used_milli: Math.floor(rnd() * 64) * 1000,
    fair_share_milli: 44_000,
    running: Math.floor(rnd() * 10),
    waiting: Math.floor(rnd() * 20),
    overcommitted: false,
    wait_p50_ms: 720_000,
    wait_p90_ms: 6_000_000,
  }));
  return { jobs, nodes, gpus, queues, teams, users, iso, rnd };
}
