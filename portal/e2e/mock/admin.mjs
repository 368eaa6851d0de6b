// What the mock says about people, their keys, and how the cluster is set up.

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const ago = (ms) => new Date(Date.now() - ms).toISOString();
const later = (ms) => ago(-ms);

const ROLES = ["team_lead", "researcher", "researcher", "viewer"];
const inTeam = (world, team) =>
  world.users
    .filter((_, i) => i % world.teams.length === world.teams.indexOf(team) || i % 3 === 0)
    .map((user, i) => ({ team, user, role: ROLES[i % ROLES.length] }));

export const members = (world, team) => inTeam(world, team);

export const users = (world) =>
  world.users.map((name, i) => ({
    name,
    created: ago((30 + i) * DAY),
    cluster_role: { 0: "admin", 4: "operator" }[i] ?? null,
    teams: world.teams.flatMap((team) => inTeam(world, team).filter((m) => m.user === name)),
  }));

export const tokens = (world) =>
  world.users.flatMap((user, i) => [
    {
      id: `t${i}`,
      user,
      name: "laptop",
      scope: "all",
      created: ago((20 + i) * DAY),
      last_used: ago(i * HOUR),
      expires: i % 3 === 0 ? later(40 * DAY) : null,
      revoked: i === 5 ? ago(DAY) : null,
    },
    ...(i % 4 === 1
      ? [{ id: `c${i}`, user, name: "ci", scope: "jobs", created: ago(9 * DAY), last_used: null }]
      : []),
  ]);

const AGENT = "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/145.0";
export const sessions = (world) =>
  world.users.slice(0, 5).map((user, i) => ({
    id: `s${i}`,
    user,
    means: i % 2 ? "oidc" : "token",
    scope: "all",
    created: ago((i + 1) * HOUR),
    expires: later((11 - i) * HOUR),
    last_used: ago(i * 600_000),
    from: `10.0.4.${17 + i}`,
    agent: AGENT,
    current: i === 0,
  }));

export const secrets = (world) =>
  ["hf-token", "wandb-api-key", "s3-credentials"].map((name, i) => ({
    team: world.teams[i % 2],
    name,
    created: ago((i + 2) * DAY),
    by: world.users[i],
  }));

export const schedules = (world) =>
  ["nightly-eval", "weekly-export"].map((name, i) => ({
    id: String(i + 1),
    name,
    user: world.users[i],
    team: world.teams[i],
    cron: i ? "0 6 * * 1" : "30 2 * * *",
    timezone: "Europe/Berlin",
    paused: i === 1,
    reason: null,
    last_job: world.jobs[i + 10]?.id ?? null,
    next: i ? null : later(9 * HOUR),
    file: `name: ${name}\ngpus: 1\nrun: python eval.py\n`,
  }));

const DEEDS = [
  ["submit_job", "job", "ok"],
  ["stop_job", "job", "ok"],
  ["set_budget", "queue nlp", "ok"],
  ["drain_node", "node n13", "ok"],
  ["create_token", "user lee", "ok"],
  ["set_policy", "policy", "BRT0006"],
];
export const audit = (world, query) => {
  const rows = Array.from({ length: 60 }, (_, i) => {
    const [what, target, outcome] = DEEDS[i % DEEDS.length];
    return {
      seq: 900 - i,
      at: ago(i * 23 * 60_000),
      who: world.users[i % world.users.length],
      from: `10.0.4.${17 + (i % 5)}`,
      method: "POST",
      what,
      target: target === "job" ? `job ${4800 - i}` : target,
      outcome,
      detail: "{}",
      prev: "0".repeat(64),
      hash: "1".repeat(64),
      token: `t${i % world.users.length}`,
    };
  });
  const [who, what] = [query.get("who"), query.get("what")];
  return {
    rows: rows.filter(
      (row) =>
        (!who || row.who === who) &&
        (!what || row.what.includes(what)) &&
        (!query.get("refused") || row.outcome !== "ok"),
    ),
    next: null,
  };
};

export const worldText = (world) => ({
  at: ago(0),
  seq: 17,
  text: [
    "policy: {backfill: true, grace: 5m}",
    "queues:",
    ...world.queues.map((q) => `  - {name: ${q.name}, quota: {gpu: ${q.quota_milli / 1000}}}`),
  ].join("\n"),
});

export const config = () => [
  { key: "listen", value: "127.0.0.1:7117", source: "default" },
  { key: "home", value: "/var/lib/berth", source: "flag" },
  { key: "gpu_fail_xids", value: "48, 63, 64, 79", source: "file" },
  { key: "log", value: "info", source: "environment" },
];
