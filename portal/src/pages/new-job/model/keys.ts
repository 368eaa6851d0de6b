/** The keys of a job file, in the order in which one is written, and how their flags are called. */

/** What a flag takes: see `Takes` in crates/berth-file/src/job/keys.rs. */
export type Takes = "switch" | "value" | "values" | "pairs" | "names" | "lists" | "rest";

export interface Key {
  name: string;
  flag: string;
  short?: string;
  takes: Takes;
}

const key = (name: string, takes: Takes, short?: string, flag = name): Key => ({
  name,
  flag,
  takes,
  ...(short && { short }),
});

export const KEYS: readonly Key[] = [
  key("name", "value", "n"),
  key("kind", "value"),
  key("team", "value", "t"),
  key("project", "value", "p"),
  key("experiment", "value"),
  key("nodes", "value", "N"),
  key("gpus", "values", "g"),
  key("cpu", "value", "c"),
  key("memory", "value", "m"),
  key("time", "value"),
  key("deadline", "value"),
  key("budget", "value"),
  key("spot", "value"),
  key("priority", "value"),
  key("preemptible", "value"),
  key("place", "value"),
  key("launch", "value"),
  key("ranks", "value"),
  key("image", "value"),
  key("pull_secrets", "values", undefined, "pull-secret"),
  key("data", "pairs"),
  key("volumes", "pairs", undefined, "volume"),
  key("workdir", "value"),
  key("network", "value"),
  key("env", "pairs", "e"),
  key("secrets", "names", undefined, "secret"),
  key("checkpoint", "value"),
  key("retry", "value"),
  key("notify", "values"),
  key("stop_when", "values", undefined, "stop-when"),
  key("array", "value", "a"),
  key("sweep", "lists"),
  key("after", "values"),
  key("singleton", "switch"),
  key("begin", "value", "b"),
  key("hold", "switch", "H"),
  key("schedule", "value"),
  key("open", "values"),
  key("idle", "value"),
  key("port", "value"),
  key("ports", "values"),
  key("ready", "value"),
  key("scale", "value"),
  key("model", "value"),
  key("labels", "pairs", undefined, "label"),
  key("tags", "values", undefined, "tag"),
  key("comment", "value"),
  key("run", "rest"),
];

const ORDER = new Map(KEYS.map((k, i) => [k.name, i]));

/** Where a key stands in a file; unknown ones stay where they are. */
export function orderOf(name: string): number {
  return ORDER.get(name) ?? -1;
}

export function keyOf(name: string): Key | undefined {
  return KEYS.find((k) => k.name === name);
}

/** Keys whose maps are written over several lines, one entry each. */
export const BLOCKS = new Set(["env", "volumes", "data", "labels", "sweep"]);
