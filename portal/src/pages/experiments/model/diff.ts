// The differences between runs. Pure.

import { type Kind, metricText, namesOf, type Row, statusOf } from "./row";

export interface DiffLine {
  /** `params.lr`, or the name of an attribute. */
  key: string;
  kind: Kind;
  name: string;
  values: (string | undefined)[];
  differs: boolean;
}

/** Every key of the runs with its values. Params come first, because they explain the metrics. */
export function diff(rows: readonly Row[]): DiffLine[] {
  const names = namesOf(rows);
  const lines: DiffLine[] = [];
  const add = (kind: Kind, name: string, value: (row: Row) => string | undefined) => {
    const values = rows.map(value);
    const key = kind === "attributes" ? name : `${kind}.${name}`;
    lines.push({ key, kind, name, values, differs: values.some((v) => v !== values[0]) });
  };
  add("attributes", "status", (r) => statusOf(r.status).word);
  add("attributes", "user", (r) => r.user);
  for (const name of names.params) add("params", name, (r) => r.params[name]);
  for (const name of names.metrics)
    add("metrics", name, (r) =>
      r.metrics[name] === undefined ? undefined : metricText(name, r.metrics[name]),
    );
  for (const name of names.tags) if (!IN_NAME.has(name)) add("tags", name, (r) => r.tags[name]);
  return lines;
}

/** The head of each column shows it. */
const IN_NAME = new Set(["mlflow.runName"]);

export const KIND_WORDS: Record<Kind, string> = {
  attributes: "Run",
  params: "Params",
  metrics: "Metrics",
  tags: "Tags",
};
