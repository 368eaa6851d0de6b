// A real Berth server in a folder of its own, for one file of tests.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const BERTH =
  process.env.BERTH_BIN ?? resolve(import.meta.dirname, "../../../target/debug/berth");

/** How long anything may take. It is no measure of speed: a machine under load is slow. */
export const PATIENCE = 60_000;

/** Requests and commands to a server, as the admin or with another token. */
export type Client = {
  url: string;
  admin: string;
  berth: (args: string[], token?: string, input?: string) => string;
  api: (method: string, path: string, body?: unknown, token?: string) => Promise<Answer>;
};

export type Server = Client & {
  process: number;
  home: string;
  /** A person with a role in a team, and a token of theirs. */
  person: (name: string, team: string, role: string) => string;
  log: () => string;
  stop: () => Promise<void>;
};

export type Answer = { status: number; body: any };

/** `flags` may depend on the folder of the server; `first` runs before anybody else asks. */
export async function startServer(
  flags: string[] | ((folder: string) => string[]) = ["--gpus", "8xH100"],
  listen = "127.0.0.1:0",
  first?: (server: Server) => unknown,
  /** One that is there already, and stays. */
  there?: string,
): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), "berth-e2e-"));
  const home = there ?? join(folder, "home");
  const child = spawn(
    BERTH,
    [
      "up",
      "--home",
      home,
      "--listen",
      listen,
      "--name",
      "box",
      ...(typeof flags === "function" ? flags(folder) : flags),
    ],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, BERTH_LOG: process.env.BERTH_LOG ?? "warn" },
      cwd: folder,
    },
  );
  let log = "";
  child.stderr.on("data", (text) => {
    log += text;
  });
  const url = await readyAt(child, () => log);
  const admin = readFileSync(join(home, "admin.token"), "utf8").trim();

  const client = clientOf(url, admin, folder, home);
  const { berth } = client;

  const person: Server["person"] = (name, team, role) => {
    tryTo(() => berth(["team", "add", team]));
    tryTo(() => berth(["user", "add", name]));
    berth(["member", "set", team, name, role]);
    return JSON.parse(
      berth(["token", "create", "test", "--user", name, "--scope", "all", "-o", "json"]),
    ).secret;
  };

  const stop = async () => {
    const names = tryTo(() => berth(["ps", "-o", "name"])) ?? "";
    for (const name of names.split("\n").filter(Boolean))
      tryTo(() => berth(["stop", "--now", name]));
    child.kill("SIGTERM");
    await new Promise((done) => (child.exitCode === null ? child.once("exit", done) : done(null)));
    rmSync(folder, { recursive: true, force: true });
  };
  const server = {
    ...client,
    process: child.pid ?? 0,
    home,
    person,
    log: () => log,
    stop,
  };
  await first?.(server);
  return server;
}

/** A client whose commands run in `folder`. `home` has the settings of `berth`. */
export function clientOf(url: string, admin: string, folder: string, home: string): Client {
  return {
    url,
    admin,
    berth: (args, token, input) =>
      execFileSync(BERTH, args, {
        env: {
          ...process.env,
          BERTH_HOME: home,
          NO_COLOR: "1",
          BERTH_URL: url,
          BERTH_TOKEN: token ?? admin,
        },
        cwd: folder,
        encoding: "utf8",
        input: input ?? "",
      }),
    api: async (method, path, body, token) => {
      const answer = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${token ?? admin}`, "content-type": "application/json" },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      return { status: answer.status, body: parsed(await answer.text()) };
    },
  };
}

/** Submits a job file; its number. */
export async function submit(server: Server, file: string, token?: string): Promise<string> {
  const answer = await fetch(`${server.url}/v1/jobs`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token ?? server.admin}`,
      "content-type": "application/yaml",
    },
    body: file,
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.status} ${text}`);
  return String(JSON.parse(text).id);
}

export async function until<T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await look();
    if (found) return found as NonNullable<T>;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

export async function jobIs(server: Server, job: string, state: string): Promise<void> {
  await until(
    `job ${job} is ${state}`,
    async () => (await server.api("GET", `/v1/jobs/${job}`)).body.state === state,
  );
}

function readyAt(child: ChildProcess, log: () => string): Promise<string> {
  return new Promise((found, failed) => {
    let said = "";
    child.stdout?.on("data", (text) => {
      said += text;
      const url = /^Berth is ready at (\S+)/m.exec(said)?.[1];
      if (url) found(url);
    });
    child.once("exit", () => failed(new Error(`the server ended: ${log()}`)));
    child.once("error", failed);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function tryTo<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
