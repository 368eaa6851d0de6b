// Runs as a training script logs them: by MLflow's REST API.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Server } from "./server";

export type Logged = {
  name: string;
  params?: Record<string, string>;
  tags?: Record<string, string>;
  /** The values of each metric, step by step. */
  metrics?: Record<string, number[]>;
  /** Left open where false. */
  finish?: boolean;
};

async function ask(server: Server, path: string, body: unknown, token?: string): Promise<any> {
  const answer = await server.api("POST", `/api/2.0/mlflow/${path}`, body, token);
  if (answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

export async function makeExperiment(server: Server, name: string, token?: string) {
  return (await ask(server, "experiments/create", { name }, token)).experiment_id as string;
}

export async function logRun(
  server: Server,
  experiment: string,
  run: Logged,
  token?: string,
): Promise<string> {
  const start = Date.now() - 600_000;
  const made = await ask(
    server,
    "runs/create",
    { experiment_id: experiment, run_name: run.name, start_time: start },
    token,
  );
  const id = made.run.info.run_id as string;
  const pairs = (of: Record<string, string> = {}) =>
    Object.entries(of).map(([key, value]) => ({ key, value }));
  const metrics = Object.entries(run.metrics ?? {}).flatMap(([key, values]) =>
    values.map((value, step) => ({ key, value, step, timestamp: start + step * 1000 })),
  );
  const batch = { run_id: id, params: pairs(run.params), tags: pairs(run.tags), metrics };
  await ask(server, "runs/log-batch", batch, token);
  if (run.finish !== false) await finishRun(server, id, token);
  return id;
}

export function finishRun(server: Server, run: string, token?: string) {
  const fields = { run_id: run, status: "FINISHED", end_time: Date.now() };
  return ask(server, "runs/update", fields, token);
}

export function logMetric(server: Server, run: string, key: string, value: number, step: number) {
  const timestamp = Date.now();
  return ask(server, "runs/log-metric", { run_id: run, key, value, step, timestamp });
}

/** `path` is below the artifacts of the run. */
export async function putArtifact(server: Server, run: string, path: string, body: string) {
  const found = await server.api("GET", `/api/2.0/mlflow/runs/get?run_id=${run}`);
  const root = String(found.body.run.info.artifact_uri).replace("mlflow-artifacts:/", "");
  const answer = await fetch(`${server.url}/api/2.0/mlflow-artifacts/artifacts/${root}/${path}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${server.admin}` },
    body,
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}

/** A registered model with a version of each run, in their order. */
export async function registerModel(
  server: Server,
  name: string,
  runs: readonly string[],
  token?: string,
): Promise<void> {
  await ask(server, "registered-models/create", { name }, token);
  for (const run of runs)
    await ask(
      server,
      "model-versions/create",
      { name, run_id: run, source: `runs:/${run}/model` },
      token,
    );
}

/** A prompt as MLflow's client registers one, with a version of each text. */
export async function registerPrompt(
  server: Server,
  name: string,
  texts: readonly string[],
  token?: string,
): Promise<void> {
  const tags = [{ key: "mlflow.prompt.is_prompt", value: "true" }];
  await ask(server, "registered-models/create", { name, tags }, token);
  for (const value of texts) {
    const own = [...tags, { key: "mlflow.prompt.text", value }];
    await ask(server, "model-versions/create", { name, source: "prompt", tags: own }, token);
  }
}

/** A version of data with these files, such as `c4@v1`. */
export function pushData(
  server: Server,
  version: string,
  team: string,
  files: Readonly<Record<string, string>>,
  token?: string,
): void {
  const folder = mkdtempSync(join(tmpdir(), "berth-data-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  server.berth(["data", "push", folder, version, "--team", team], token);
  rmSync(folder, { recursive: true });
}
