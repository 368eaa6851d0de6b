import { queryOptions } from "@tanstack/react-query";
import { address, request } from "./client";

/**
 * Experiments, runs and models: the routes of MLflow's REST API, as docs/tracking.md describes them.
 * They take the session like all other routes. Refusals come as ApiError, with MLflow's code in `kind`.
 */
const ROOT = "/ajax-api/2.0/mlflow/";

type Value = string | number | boolean | null | undefined;
export type TrackingFields = Readonly<Record<string, Value | readonly unknown[]>>;

interface Asked {
  /** What a GET reads from its query, and every other method from its body. */
  fields?: TrackingFields;
  /** The team, for names that depend on it, such as the experiment 0. */
  team?: string | undefined;
  signal?: AbortSignal;
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** One call: `tracking<{ run: Run }>("GET", "runs/get", { fields: { run_id } })`. Throws ApiError. */
export async function tracking<T>(method: Method, path: string, asked: Asked = {}): Promise<T> {
  const { fields = {}, team, signal } = asked;
  const headers: Record<string, string> = {};
  if (team) headers["x-berth-team"] = team;
  let at = ROOT + path;
  let body: string | undefined;
  if (method === "GET") at = withQuery(at, fields);
  else {
    headers["content-type"] = "application/json";
    body = JSON.stringify(fields);
  }
  const init: RequestInit = { method, headers };
  if (body !== undefined) init.body = body;
  if (signal) init.signal = signal;
  const response = await request(at, init);
  return (await response.json()) as T;
}

/** A list repeats its key. */
function withQuery(at: string, fields: TrackingFields): string {
  const search = new URLSearchParams();
  for (const [key, value] of Object.entries(fields))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined && one !== null && one !== "") search.append(key, String(one));
  const text = search.toString();
  return text ? `${at}?${text}` : at;
}

/** All pages of a list, up to `most` of its elements. */
export async function allPages<T>(
  method: "GET" | "POST",
  path: string,
  list: string,
  asked: Asked,
  most = 1000,
): Promise<T[]> {
  const out: T[] = [];
  let token: string | undefined;
  do {
    const fields = { ...asked.fields, max_results: Math.min(1000, most), page_token: token };
    const answer = await tracking<Record<string, unknown>>(method, path, { ...asked, fields });
    out.push(...((answer[list] as T[] | undefined) ?? []));
    token = (answer.next_page_token as string | undefined) || undefined;
  } while (token && out.length < most);
  return out;
}

export interface Pair {
  key: string;
  value: string;
}

export type Stage = "active" | "deleted";
export type RunStatus = "RUNNING" | "SCHEDULED" | "FINISHED" | "FAILED" | "KILLED";

export interface Experiment {
  experiment_id: string;
  /** Of another team: `team/name`. */
  name: string;
  artifact_location: string;
  lifecycle_stage: Stage;
  creation_time: number;
  last_update_time: number;
  tags: Pair[];
}

export interface RunInfo {
  run_id: string;
  run_name: string;
  experiment_id: string;
  user_id: string;
  status: RunStatus;
  lifecycle_stage: Stage;
  artifact_uri: string;
  start_time?: number;
  end_time?: number;
}

/** A number; NaN comes as a text. */
export type MetricValue = number | "NaN";

export interface MetricPoint {
  key: string;
  value: MetricValue;
  timestamp: number;
  step: number;
  /** Set if the answer has several runs. */
  run_id?: string;
}

export interface DatasetInput {
  tags: Pair[];
  dataset: {
    name: string;
    digest: string;
    source_type: string;
    source: string;
    schema?: string;
    profile?: string;
  };
}

export interface TrackedRun {
  info: RunInfo;
  data: { metrics: MetricPoint[]; params: Pair[]; tags: Pair[] };
  inputs: { dataset_inputs: DatasetInput[]; model_inputs: { model_id: string }[] };
  outputs: { model_outputs: { model_id: string; step: number }[] };
}

export interface RunPage {
  runs?: TrackedRun[];
  next_page_token?: string;
}

export interface ModelVersion {
  name: string;
  version: string;
  creation_timestamp: number;
  last_updated_timestamp: number;
  user_id: string;
  current_stage: string;
  source: string;
  status: string;
  description?: string;
  run_id?: string;
  run_link?: string;
  model_id?: string;
  tags: Pair[];
  aliases: string[];
}

export interface RegisteredModel {
  name: string;
  creation_timestamp: number;
  last_updated_timestamp: number;
  user_id: string;
  description?: string;
  tags: Pair[];
  aliases: { alias: string; version: string }[];
  latest_versions: ModelVersion[];
}

export interface LoggedModel {
  info: {
    model_id: string;
    experiment_id: string;
    name: string;
    model_type: string;
    source_run_id: string;
    status: string;
    artifact_uri: string;
    creation_timestamp_ms: number;
    last_updated_timestamp_ms: number;
    tags: Pair[];
  };
  data: { params: Pair[]; metrics: MetricPoint[] };
}

export interface ArtifactFile {
  /** Relative to the requested folder. */
  path: string;
  is_dir: boolean;
  file_size?: number;
}

export function metricNumber(value: MetricValue): number {
  return value === "NaN" ? Number.NaN : value;
}

export function record(pairs: readonly Pair[]): Record<string, string> {
  return Object.fromEntries(pairs.map((p) => [p.key, p.value]));
}

/** `mlflow-artifacts:/nlp/3/…` is of the team nlp: no other field says so. */
export function teamOf(uri: string): string | undefined {
  return /^mlflow-artifacts:\/+([^/]+)\//.exec(uri)?.[1];
}

/** The path of an artifact for its routes. */
export function artifactPath(uri: string): string {
  return uri.replace(/^mlflow-artifacts:\/+/, "").replace(/\/+$/, "");
}

const ARTIFACTS = "/ajax-api/2.0/mlflow-artifacts/artifacts";

/** The URL of one file. `path` begins with the team. */
export function artifactAddress(path: string): string {
  return `${ARTIFACTS}/${path.split("/").map(encodeURIComponent).join("/")}`;
}

export async function listArtifacts(path: string, signal?: AbortSignal): Promise<ArtifactFile[]> {
  const response = await request(address(ARTIFACTS, { path }), signal ? { signal } : {});
  return ((await response.json()) as { files?: ArtifactFile[] }).files ?? [];
}

// The first words of query keys, which `useChange` and others invalidate:
// "experiments", "runs", "models".

/** Experiments of one team, including those shared with it. */
export function experimentsQuery(team: string, deleted = false) {
  return queryOptions({
    queryKey: ["experiments", "of-team", team, deleted],
    queryFn: ({ signal }) =>
      allPages<Experiment>(
        "POST",
        "experiments/search",
        "experiments",
        { fields: { view_type: deleted ? "DELETED_ONLY" : "ACTIVE_ONLY" }, team, signal },
        10_000,
      ),
  });
}

export function experimentQuery(id: string, team?: string) {
  return queryOptions({
    queryKey: ["experiments", "one", id, team],
    queryFn: async ({ signal }) =>
      (
        await tracking<{ experiment: Experiment }>("GET", "experiments/get", {
          fields: { experiment_id: id },
          team,
          signal,
        })
      ).experiment,
  });
}

export function runQuery(id: string) {
  return queryOptions({
    queryKey: ["runs", "one", id],
    queryFn: async ({ signal }) =>
      (await tracking<{ run: TrackedRun }>("GET", "runs/get", { fields: { run_id: id }, signal }))
        .run,
    // The event stream has no runs, so poll a run until it ends.
    refetchInterval: (query) => (isOpen(query.state.data?.info.status) ? 5000 : false),
  });
}

export function isOpen(status: RunStatus | undefined): boolean {
  return status === "RUNNING" || status === "SCHEDULED";
}

/** The registered versions of a run, or all versions of a model. */
export function modelVersionsQuery(filter: string, team: string | undefined) {
  return queryOptions({
    queryKey: ["models", "versions", filter, team],
    queryFn: ({ signal }) =>
      allPages<ModelVersion>("GET", "model-versions/search", "model_versions", {
        fields: { filter },
        team,
        signal,
      }),
  });
}

export function registeredModelsQuery(team: string, filter = "") {
  return queryOptions({
    queryKey: ["models", "of-team", team, filter],
    queryFn: ({ signal }) =>
      allPages<RegisteredModel>(
        "GET",
        "registered-models/search",
        "registered_models",
        { fields: { filter }, team, signal },
        10_000,
      ),
  });
}

export function registeredModelQuery(name: string, team: string | undefined) {
  return queryOptions({
    queryKey: ["models", "one", name, team],
    queryFn: async ({ signal }) =>
      (
        await tracking<{ registered_model: RegisteredModel }>("GET", "registered-models/get", {
          fields: { name },
          team,
          signal,
        })
      ).registered_model,
  });
}

export function loggedModelQuery(id: string) {
  return queryOptions({
    queryKey: ["models", "logged", id],
    queryFn: async ({ signal }) =>
      (
        await tracking<{ model: LoggedModel }>("GET", `logged-models/${encodeURIComponent(id)}`, {
          signal,
        })
      ).model,
  });
}
