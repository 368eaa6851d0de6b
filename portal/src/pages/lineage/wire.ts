/**
 * What `GET /v1/lineage` answers, as docs/openapi.json describes it.
 * With a schema that has it, this file is: `export type Lineage = components["schemas"]["Lineage"]`, and
 * so for the others.
 */
export type LineageKind =
  | "model"
  | "logged_model"
  | "run"
  | "job"
  | "data"
  | "dataset"
  | "code"
  | "image";

export interface LineageDetails {
  status?: string;
  by?: string;
  created?: string;
  started?: string;
  ended?: string;
  cost_micros?: number;
  gpu_ms?: number;
  gpus?: string;
  asks?: string;
  project?: string;
  experiment?: string;
  experiment_id?: string;
  hash?: string;
  bytes?: number;
  files?: number;
  commit?: string;
  dirty?: boolean;
  checkpoint?: string;
  aliases?: string[];
  source?: string;
  note?: string;
}

export interface LineageNode {
  id: string;
  kind: LineageKind;
  name: string;
  team: string;
  label: string;
  hidden?: boolean;
  gone?: boolean;
  details: LineageDetails;
}

export type LineageLink =
  | "registered_from"
  | "logged_by"
  | "read_model"
  | "child_of"
  | "run_of"
  | "read"
  | "with_code"
  | "in_image"
  | "derived_from"
  | "resumed_from";

/** `from` was made from, or with, `to`. */
export interface LineageEdge {
  from: string;
  to: string;
  kind: LineageLink;
}

export interface Lineage {
  of: string;
  nodes: LineageNode[];
  edges: LineageEdge[];
  cost_micros: number;
  gpu_ms: number;
  more: boolean;
}
