// The changes of a model. Pure.

import type { ModelVersion, RegisteredModel } from "@/api/tracking";
import type { AuditRow } from "@/api/types";
import { teamWords } from "./shares";

export interface Change {
  id: string;
  /** Milliseconds. */
  at: number;
  /** Undefined if only the time is known. */
  who: string | undefined;
  what: string;
  version?: string | undefined;
}

/** The creation and the last change of the model and its versions. */
export function fromFields(model: RegisteredModel, versions: readonly ModelVersion[]): Change[] {
  const made = {
    id: "made",
    at: model.creation_timestamp,
    who: model.user_id,
    what: "registered it",
  };
  const out: Change[] = [made];
  for (const v of versions) {
    out.push({
      id: `v${v.version}`,
      at: v.creation_timestamp,
      who: v.user_id,
      what: `made version ${v.version}`,
      version: v.version,
    });
    if (v.last_updated_timestamp > v.creation_timestamp)
      out.push({
        id: `v${v.version} changed`,
        at: v.last_updated_timestamp,
        who: undefined,
        what: `Version ${v.version} was last changed`,
        version: v.version,
      });
  }
  const known = out.some((c) => c.at === model.last_updated_timestamp);
  if (!known)
    out.push({
      id: "changed",
      at: model.last_updated_timestamp,
      who: undefined,
      what: "The model was last changed",
    });
  return out.sort(newestFirst);
}

/** Turns rows of the audit log into sentences. */
export function fromAudit(rows: readonly AuditRow[], team: string, name: string): Change[] {
  const target = `model ${team}/${name}`;
  return rows
    .filter((row) => row.target === target && row.outcome === "ok")
    .map((row) => {
      const detail = detailOf(row.detail);
      return {
        id: String(row.seq),
        at: Date.parse(row.at),
        who: row.who,
        what: words(row.what, detail),
        version: detail.version,
      };
    })
    .sort(newestFirst);
}

const newestFirst = (a: Change, b: Change) => b.at - a.at || b.id.localeCompare(a.id);

type Detail = Readonly<Record<string, string | undefined>>;

function detailOf(text: string | null | undefined): Detail {
  try {
    const value: unknown = JSON.parse(text ?? "{}");
    if (typeof value !== "object" || value === null) return {};
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, one == null ? undefined : String(one)]),
    );
  } catch {
    return {};
  }
}

function words(what: string, d: Detail): string {
  const version = d.version ? `version ${d.version}` : "a version";
  switch (what) {
    case "create_registered_model":
      return "registered it";
    case "rename_registered_model":
      return `renamed it to ${d.to ?? "another name"}`;
    case "update_registered_model":
      return "changed its description";
    case "delete_registered_model":
      return "deleted it";
    case "set_registered_model_tag":
      return `set the tag ${d.key ?? ""}`.trim();
    case "delete_registered_model_tag":
      return `removed the tag ${d.key ?? ""}`.trim();
    case "set_registered_model_alias":
      return `let ${d.alias ?? "an alias"} name ${version}`;
    case "delete_registered_model_alias":
      return `removed the alias ${d.alias ?? ""}`.trim();
    case "create_model_version":
      return `made ${version}`;
    case "update_model_version":
      return `changed the description of ${version}`;
    case "delete_model_version":
      return `deleted ${version}`;
    case "set_model_version_tag":
      return `set a tag of ${version}`;
    case "delete_model_version_tag":
      return `removed a tag of ${version}`;
    case "transition_model_version_stage":
      return `changed the stage of ${version}`;
    case "share_model":
      return `shared it with ${teamWords(d.team)}`;
    case "unshare_model":
      return `no longer shares it with ${teamWords(d.team)}`;
    default:
      return what.replaceAll("_", " ");
  }
}
