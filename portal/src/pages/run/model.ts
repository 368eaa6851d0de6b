// Prepares the answers of MLflow's routes for the page of a run. Pure.

import type { DatasetInput, TrackedRun } from "@/api/tracking";
import { artifactAddress, record } from "@/api/tracking";
import { shell } from "@/design/CommandBar";
import type { Row } from "../experiments/model/row";
import type { RunSearch } from "./search";

export interface RunParts {
  run: TrackedRun;
  row: Row;
  team: string | undefined;
  /** The root of its artifacts, as the routes of artifacts take it. */
  root: string;
}

export interface Dataset {
  name: string;
  digest: string;
  /** The use of the data set: training, validation, data. */
  context: string | undefined;
  source: string | undefined;
  /** `data:c4@v3`, if Berth keeps the version. */
  lineage: string | undefined;
}

export function datasetOf(input: DatasetInput): Dataset {
  const { name, digest, source_type, source } = input.dataset;
  const given = parsed(source);
  const dvc = source_type === "berth" ? textOf(given?.data)?.replace(/^dvc:/, "") : undefined;
  return {
    name,
    digest,
    context: record(input.tags)["mlflow.data.context"],
    source:
      textOf(given?.data) ?? textOf(given?.uri) ?? textOf(given?.path) ?? (source || undefined),
    lineage: dvc && `data:${dvc}`,
  };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Whether a user set the tag, and not Berth or MLflow. */
export function isOwnTag(key: string): boolean {
  return !/^(berth|mlflow)\./.test(key);
}

/** The tags of users come first. */
export function tagsInOrder(tags: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(tags).sort(
    ([a], [b]) => Number(!isOwnTag(a)) - Number(!isOwnTag(b)) || a.localeCompare(b, "en"),
  );
}

export type Preview = "image" | "text" | "json" | "none";

const IMAGES = new Set(["png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "ico", "avif"]);
const BINARY = new Set(
  "pkl pickle pt pth bin safetensors onnx ckpt h5 npz npy parquet arrow gz zip tar tgz xz zst 7z pdf mp3 mp4 wav webm tif tiff so whl woff woff2 db".split(
    " ",
  ),
);

/** The kind of preview, by the extension of the file. Files with an unknown extension may be text. */
export function previewOf(path: string): Preview {
  const name = path.split("/").at(-1) ?? "";
  const end = name.includes(".") ? (name.split(".").at(-1) ?? "").toLowerCase() : "";
  if (IMAGES.has(end)) return "image";
  if (end === "json") return "json";
  return BINARY.has(end) ? "none" : "text";
}

export const MEDIA: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  svg: "image/svg+xml",
  bmp: "image/bmp",
  ico: "image/vnd.microsoft.icon",
  avif: "image/avif",
};

/** The maximum sizes of a preview. */
export const MOST_TEXT = 256 * 1024;
export const MOST_IMAGE = 16 * 1024 * 1024;

/** Decodes text; undefined for other bytes. Omits a character that the end of the preview cuts. */
export function textOfBytes(bytes: Uint8Array, whole: boolean): string | undefined {
  if (bytes.subarray(0, 8000).includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !whole });
  } catch {
    return undefined;
  }
}

/** Indents JSON. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** The command that lists the folder or saves the file. */
export function curlOf(root: string, { path, file }: RunSearch): string {
  const token = '-H "Authorization: Bearer $BERTH_TOKEN"';
  const base = "/api/2.0/mlflow-artifacts/artifacts";
  if (file) {
    const at = artifactAddress(`${root}/${file}`).replace("/ajax-api/", "/api/");
    return `curl ${token} -o ${shell(file.split("/").at(-1) ?? "file")} "$BERTH_URL${at}"`;
  }
  const folder = path ? `${root}/${path}` : root;
  return `curl ${token} "$BERTH_URL${base}?path=${encodeURIComponent(folder).replaceAll("%2F", "/")}"`;
}
