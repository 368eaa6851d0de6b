/*
 * A stand-in for the server, for work on the portal and for screenshots: `npm run mock`, then `npm run
 * dev`. It also serves dist as the real server does, with the same policy. It keeps nothing.
 *
 *   PORT=7119  SLOW=2000 (ms per answer)  FAIL=/v1/jobs (prefixes that fail)  JOBS=50000  EVENTS=5 (a second)
 *   RUNS=10000 of one experiment   DIST=folder of a build   ROLE=viewer|researcher|team_lead|admin   EMPTY=1   SIGNED_OUT=1
 */
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import * as admin from "./admin.mjs";
import * as cluster from "./cluster.mjs";
import { make } from "./data.mjs";
import * as jobs from "./jobs.mjs";
import { makeModels, modelRoutes } from "./models.mjs";
import { makeTracking, trackingRoutes } from "./tracking.mjs";

const env = process.env;
const port = Number(env.PORT ?? 7119);
const world = make({ jobs: env.EMPTY ? 0 : Number(env.JOBS ?? 400) });
const tracked = makeTracking({ runs: Number(env.RUNS ?? 10_000), empty: Boolean(env.EMPTY) });
const models = makeModels({ runs: tracked.runs, empty: Boolean(env.EMPTY) });
const dist = env.DIST ? `${env.DIST}/` : new URL("../../dist/", import.meta.url).pathname;
const role = env.ROLE ?? "admin";
const now = () => new Date().toISOString();
const later = (ms) => new Date(Date.now() + ms).toISOString();

const KEY = "00ff_00ff";
const session = () => ({
  id: "s1",
  user: "kim",
  expires_at: later(8 * 3.6e6),
  means: "token",
});
const me = () => ({
  user: "kim",
  cluster_role: role === "admin" ? "admin" : null,
  default_team: "nlp",
  default_project: null,
  teams: [
    { team: "nlp", role: role === "admin" ? "team_lead" : role },
    { team: "vision", role: "viewer" },
  ],
  token: { id: "s1", name: "session", user: "kim", scope: "all", created: now() },
});
const problem = (status, code, title, detail, next = "Try again in a moment.") => ({
  status,
  body: {
    type: `urn:berth:problem:${code}`,
    code,
    status,
    title,
    detail,
    next,
    instance: "req-17",
  },
});

function listJobs(q) {
  let all = world.jobs;
  const states = q.get("state")?.split(",");
  if (states) {
    const ended = ["done", "failed", "cancelled"];
    all = all.filter(
      (j) => states.includes(j.state) || (states.includes("active") && !ended.includes(j.state)),
    );
  }
  for (const key of ["user", "team", "project", "experiment"])
    if (q.get(key)) all = all.filter((j) => j[key] === q.get(key));
  const text = q.get("text")?.toLowerCase();
  if (text) all = all.filter((j) => `${j.name} ${j.id}`.toLowerCase().includes(text));
  const sort = q.get("sort");
  if (sort) {
    const key =
      { gpus: "gpus_milli", cost: "cost_micros" }[sort.replace("-", "")] ?? sort.replace("-", "");
    const sign = sort.startsWith("-") ? -1 : 1;
    all = [...all].sort((a, b) => sign * (a[key] > b[key] ? 1 : a[key] < b[key] ? -1 : 0));
  }
  const from = Number(q.get("cursor") || 0);
  const limit = Math.min(1000, Number(q.get("limit") || 100));
  const counts = {};
  for (const j of all) counts[j.state] = (counts[j.state] ?? 0) + 1;
  return {
    jobs: all.slice(from, from + limit),
    next: from + limit < all.length ? String(from + limit) : null,
    ...(q.get("counts") === "true" && { counts }),
  };
}

/** With SIGNED_OUT=1 each browser signs in for itself, with any token but `wrong`. */
const IN = "mock_session=yes";
let signedIn = true;
let cookie;
const items = (list) => ({ items: list });
/** An answer that is no JSON. */
const raw = (text, type) => ({ raw: text, type });
const DONE = { status: 204, raw: "" };

/** A route of one job: the rest of its address, and what it says. */
const ofJob = (rest, answer, method = "GET") => [
  method,
  new RegExp(`^/v1/jobs/([^/]+)${rest}$`),
  (query, match) => {
    const job = world.jobs.find((j) => j.id === match[1] || j.name === match[1]);
    const none = "There is no such job";
    const next = "List jobs with `berth ps --all`.";
    return job
      ? answer(job, query)
      : problem(404, "BRT0008", none, `There is no job ${match[1]}.`, next);
  },
];

const routes = [
  [
    "GET",
    /^\/v1\/session$/,
    () =>
      signedIn ? session() : problem(401, "BRT0004", "A token is needed", "Nobody is signed in."),
  ],
  [
    "GET",
    /^\/v1\/session\/options$/,
    () => ({ token: true, oidc: { name: "Harbour SSO", start: "/v1/session/oidc/start" } }),
  ],
  [
    "POST",
    /^\/v1\/session$/,
    (_, __, body) => {
      if (body?.token === "wrong")
        return problem(
          401,
          "BRT0005",
          "The token has expired or was revoked",
          "This token has expired.",
          "Ask for another: `berth token create`.",
        );
      cookie = `${IN}; Path=/`;
      return { session: session(), key: KEY };
    },
  ],
  [
    "DELETE",
    /^\/v1\/session$/,
    () => {
      cookie = `${IN}; Path=/; Max-Age=0`;
      return { logout_url: null };
    },
  ],
  [
    "GET",
    /^\/v1\/session\/device\/(.+)$/,
    () => ({
      client: "kims-laptop",
      from: "10.0.4.17",
      created_at: now(),
      expires_at: later(600_000),
    }),
  ],
  ["POST", /^\/v1\/session\/device\/(.+)$/, () => DONE],
  ["DELETE", /^\/v1\/sessions\/(.+)$/, () => DONE],
  ["GET", /^\/v1\/me$/, me],
  ["GET", /^\/v1\/version$/, () => ({ version: "0.1.0", api: "v1" })],
  ["GET", /^\/v1\/jobs$/, (q) => listJobs(q)],
  ofJob("", (job) => job),
  ofJob("/timeline", (job) => jobs.timeline(world, job)),
  ofJob("/attempts", (job) => items(jobs.attempts(job))),
  ofJob("/why", (job) => jobs.why(job)),
  ofJob("/stop/preview", (job) => jobs.stopPreview(world, job)),
  ofJob("/file", (job) => raw(jobs.file(job), "application/yaml")),
  ofJob("/figures", (job) => jobs.figures(job)),
  ofJob("/logs", (job, query) => raw(jobs.log(job, query), "application/x-ndjson")),
  ofJob("/logs/search", (job, query) => jobs.logSearch(job, query)),
  ofJob("/files", (job, query) => jobs.files(job, query)),
  ofJob("/files/content", () => raw("step,loss\n1,4.0\n", "application/octet-stream")),
  ofJob("/(?:stop|pause|resume)", (job) => job, "POST"),
  ofJob("", (job) => job, "PATCH"),
  [
    "POST",
    /^\/v1\/plan$/,
    () => ({
      name: "a-job",
      team: "nlp",
      asks: "H100:8",
      elements: 1,
      starts_now: true,
      places: [{ task: 0, node: "n01", model: "H100", gpus: [0, 1, 2, 3, 4, 5, 6, 7] }],
      eta: null,
      blockers: [],
      price_micros_per_hour: 19_920_000,
      total_micros: 119_520_000,
      estimate_ms: 6 * 3.6e6,
      most_micros: 239_040_000,
      warnings: [],
      declared: false,
    }),
  ],
  ["GET", /^\/v1\/leases$/, (query) => cluster.leases(world, query)],
  [
    "GET",
    /^\/v1\/gpus\/figures$/,
    (query) =>
      cluster.gpuFigures(world, query) ??
      problem(400, "BRT0003", "The request could not be read", "there is no such figure of GPUs"),
  ],
  ["GET", /^\/v1\/nodes\/([^/]+)\/drain\/preview$/, (_, m) => cluster.drainPreview(world, m[1])],
  [
    "POST",
    /^\/v1\/nodes\/([^/]+)\/(?:drain|cordon|resume)$/,
    (_, m) => world.nodes.find((n) => n.name === m[1]) ?? world.nodes[0],
  ],
  ["GET", /^\/v1\/cost$/, (query) => cluster.cost(world, query)],
  ["GET", /^\/v1\/cost\/series$/, (query) => cluster.costSeries(world, query)],
  ["GET", /^\/v1\/cost\/rows$/, (query) => cluster.costRows(world, query)],
  [
    "GET",
    /^\/v1\/cost\/idle$/,
    (query) =>
      cluster.costIdle(world, query) ??
      problem(400, "BRT0003", "The request could not be read", "that is more than 62 days"),
  ],
  ["GET", /^\/v1\/budgets$/, () => items(env.EMPTY ? [] : cluster.budgets())],
  [
    "GET",
    /^\/v1\/budgets\/([^/]+)\/forecast$/,
    (_, m) =>
      cluster.forecast(m[1]) ??
      problem(404, "BRT0009", "There is no such thing", `there is no budget ${m[1]}`),
  ],
  ["GET", /^\/v1\/shares$/, () => items(cluster.shares(world))],
  [
    "GET",
    /^\/v1\/queues\/([^/]+)$/,
    (_, m) => world.queues.find((q) => q.name === m[1]) ?? world.queues[0],
  ],
  ["GET", /^\/v1\/audit$/, (query) => admin.audit(world, query)],
  ["GET", /^\/v1\/world$/, () => admin.worldText(world)],
  ["GET", /^\/v1\/teams\/([^/]+)\/members$/, (_, m) => items(admin.members(world, m[1]))],
  ...["users", "tokens", "sessions", "secrets", "schedules", "config"].map((noun) => [
    "GET",
    new RegExp(`^/v1/${noun}$`),
    () => items(admin[noun](world)),
  ]),
  [
    "GET",
    /^\/v1\/policy$/,
    () => ({
      version: 1,
      knobs: { backfill: "true", grace: "5m", share_gpus: "team", reclaim: "true" },
      changed: [],
    }),
  ],
  ["GET", /^\/readyz$/, () => ({ ok: true, parts: { store: "", engine: "" } })],
  ["GET", /^\/v1\/teams$/, () => items(world.teams.map((name) => ({ name, parent: null })))],
  ["GET", /^\/v1\/queues$/, () => items(world.queues)],
  ["GET", /^\/v1\/nodes$/, () => items(world.nodes)],
  ["GET", /^\/v1\/gpus$/, () => items(world.gpus)],
  ["GET", /^\/v1\/(projects|volumes|templates)$/, () => items([])],
  ...trackingRoutes(tracked, { raw }),
  ...modelRoutes(models),
];

const CSP =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const TYPES = {
  ".js": "text/javascript",
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

function file(res, path) {
  const asked = `${dist}${path.replace(/^\//, "")}`;
  const found =
    path !== "/" && !path.includes("..") && existsSync(asked) ? asked : `${dist}index.html`;
  res.setHeader("content-security-policy", CSP);
  res.setHeader("content-type", TYPES[extname(found)] ?? "application/octet-stream");
  // A build may be replacing it right now.
  try {
    res.end(readFileSync(found));
  } catch {
    res.writeHead(503).end();
  }
}

let seq = 100;
function events(req, res) {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  res.write(": hello\n\n");
  const rate = Number(env.EVENTS ?? 1);
  const timer =
    rate > 0 &&
    setInterval(() => {
      seq += 1;
      const job = world.jobs[seq % Math.max(1, Math.min(60, world.jobs.length))];
      const event =
        seq % 40 === 0 || !job
          ? {
              kind: "alert",
              code: "budget",
              team: "nlp",
              text: "The budget of nlp has reached 80 %: $36,000 of $45,000",
            }
          : {
              kind: "job",
              id: job.id,
              name: job.name,
              state: job.state,
              team: job.team,
              text: "is seen",
            };
      res.write(`id: ${seq}\ndata: ${JSON.stringify({ ...event, seq, at: now() })}\n\n`);
    }, 1000 / rate);
  req.on("close", () => clearInterval(timer));
}

createServer(async (req, res) => {
  const url = new URL(req.url, "http://x");
  if (!/^\/(v1|ajax-api|readyz|healthz)/.test(url.pathname)) return file(res, url.pathname);
  if (url.pathname === "/v1/events") return events(req, res);
  let text = "";
  for await (const part of req) text += part;
  let body;
  try {
    body = text ? JSON.parse(text) : undefined;
  } catch {}
  if (env.SLOW) await new Promise((ok) => setTimeout(ok, Number(env.SLOW)));
  signedIn = !env.SIGNED_OUT || req.headers.cookie?.includes(IN) === true;
  cookie = undefined;
  const send = (answer) => {
    const plain = answer?.raw !== undefined;
    const status = plain ? (answer.status ?? 200) : answer?.body ? answer.status : 200;
    const type = status >= 400 ? "application/problem+json" : "application/json";
    if (cookie) res.setHeader("set-cookie", cookie);
    res.writeHead(status, status === 204 ? {} : { "content-type": answer?.type ?? type });
    res.end(plain ? answer.raw : JSON.stringify(answer?.body ?? answer));
  };
  if (env.FAIL?.split(",").some((p) => url.pathname.startsWith(p)))
    return send(
      problem(
        503,
        "BRT0020",
        "The server is busy",
        "The server has too much to do.",
        "Try again in a minute.",
      ),
    );
  // Whoever has signed in says so; pages that were opened without it are shown all the same.
  const key = req.headers["x-berth-session-key"];
  if (
    req.headers.cookie?.includes(IN) &&
    key !== KEY &&
    !/^\/v1\/session(\/options)?$/.test(url.pathname)
  )
    return send(problem(401, "BRT0004", "A token is needed", "The key of the session is missing."));
  for (const [method, pattern, answer] of routes) {
    const match = pattern.exec(url.pathname);
    if (match && method === req.method) return send(answer(url.searchParams, match, body, req));
  }
  return send(
    problem(404, "BRT0010", "There is no such address", "there is nothing at this address"),
  );
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}`));
