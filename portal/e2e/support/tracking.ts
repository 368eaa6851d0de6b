// Logs runs, models and data as a training script does, with MLflow's REST API.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "./server";

export type Logged = {
  name: string;
  params?: Record<string, string>;
  tags?: Record<string, string>;
  /** The values of each metric, step by step. */
  metrics?: Record<string, number[]>;
  /** False leaves the run open. */
  finish?: boolean;
};

async function ask(client: Client, path: string, body: unknown, token?: string): Promise<any> {
  const answer = await client.api("POST", `/api/2.0/mlflow/${path}`, body, token);
  if (answer.status !== 200) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

export async function makeExperiment(client: Client, name: string, token?: string) {
  return (await ask(client, "experiments/create", { name }, token)).experiment_id as string;
}

export async function logRun(
  client: Client,
  experiment: string,
  run: Logged,
  token?: string,
): Promise<string> {
  const start = Date.now() - 600_000;
  const made = await ask(
    client,
    "runs/create",
    { experiment_id: experiment, run_name: run.name, start_time: start },
    token,
  );
  const id = made.run.info.run_id as string;
  await logBatch(client, id, run, token, start);
  if (run.finish !== false) await finishRun(client, id, token);
  return id;
}

/** One value of a metric for each second from `start` on. */
export function logBatch(
  client: Client,
  run: string,
  { params, tags, metrics }: Omit<Logged, "name">,
  token?: string,
  start = Date.now() - 600_000,
) {
  const pairs = (of: Record<string, string> = {}) =>
    Object.entries(of).map(([key, value]) => ({ key, value }));
  const points = Object.entries(metrics ?? {}).flatMap(([key, values]) =>
    values.map((value, step) => ({ key, value, step, timestamp: start + step * 1000 })),
  );
  const batch = { run_id: run, params: pairs(params), tags: pairs(tags), metrics: points };
  return ask(client, "runs/log-batch", batch, token);
}

export function finishRun(client: Client, run: string, token?: string, status = "FINISHED") {
  return ask(client, "runs/update", { run_id: run, status, end_time: Date.now() }, token);
}

/** Adds a version of data, such as `c4@v2`, to the inputs of a run. */
export function logData(
  client: Client,
  run: string,
  version: string,
  digest: string,
  token?: string,
) {
  const source = JSON.stringify({ path: "/data", data: `dvc:${version}` });
  const dataset = { name: version, digest, source_type: "berth", source };
  return ask(client, "runs/log-inputs", { run_id: run, datasets: [{ dataset }] }, token);
}

export function logMetric(client: Client, run: string, key: string, value: number, step: number) {
  const timestamp = Date.now();
  return ask(client, "runs/log-metric", { run_id: run, key, value, step, timestamp });
}

/** Uploads an artifact. `path` is relative to the artifacts of the run. */
export async function putArtifact(
  client: Client,
  run: string,
  path: string,
  body: string,
  token?: string,
) {
  const get = `/api/2.0/mlflow/runs/get?run_id=${run}`;
  const found = await client.api("GET", get, undefined, token);
  const root = String(found.body.run.info.artifact_uri).replace("mlflow-artifacts:/", "");
  const answer = await fetch(`${client.url}/api/2.0/mlflow-artifacts/artifacts/${root}/${path}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${token ?? client.admin}` },
    body,
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
}

/** Registers a model with a version for each run, in their order. */
export async function registerModel(
  client: Client,
  name: string,
  runs: readonly string[],
  token?: string,
): Promise<void> {
  await ask(client, "registered-models/create", { name }, token);
  for (const run of runs)
    await ask(
      client,
      "model-versions/create",
      { name, run_id: run, source: `runs:/${run}/model` },
      token,
    );
}

export function setAlias(
  client: Client,
  name: string,
  alias: string,
  version: string,
  token?: string,
) {
  return ask(client, "registered-models/alias", { name, alias, version }, token);
}

export function setStage(
  client: Client,
  name: string,
  version: string,
  stage: string,
  token?: string,
) {
  return ask(client, "model-versions/transition-stage", { name, version, stage }, token);
}

/** Registers a prompt as MLflow's client does, with a version for each text. */
export async function registerPrompt(
  client: Client,
  name: string,
  texts: readonly string[],
  token?: string,
): Promise<void> {
  const tags = [{ key: "mlflow.prompt.is_prompt", value: "true" }];
  await ask(client, "registered-models/create", { name, tags }, token);
  for (const value of texts) {
    const own = [...tags, { key: "mlflow.prompt.text", value }];
    await ask(client, "model-versions/create", { name, source: "prompt", tags: own }, token);
  }
}

/** Pushes a version of data, such as `c4@v1`, with these files. */
export function pushData(
  client: Client,
  version: string,
  team: string,
  files: Readonly<Record<string, string>>,
  token?: string,
): void {
  const folder = mkdtempSync(join(tmpdir(), "berth-data-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  client.berth(["data", "push", folder, version, "--team", team], token);
  rmSync(folder, { recursive: true });
}
