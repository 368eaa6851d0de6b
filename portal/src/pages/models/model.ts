// Prepares registered models for the list. Pure.

import { type ModelVersion, type Pair, type RegisteredModel, record } from "@/api/tracking";

const IS_PROMPT = "mlflow.prompt.is_prompt";
const PROMPT_TEXT = "mlflow.prompt.text";

/** Prompts are registered models with a tag. A search omits them unless it names the tag. */
export const PROMPTS = `tags.\`${IS_PROMPT}\` = 'true'`;

export function isPrompt(model: { tags: readonly Pair[] }): boolean {
  return record(model.tags)[IS_PROMPT] === "true";
}

/** The text of a version of a prompt. Indents a conversation, which is JSON. */
export function promptText(version: { tags: readonly Pair[] }): string | undefined {
  const text = record(version.tags)[PROMPT_TEXT];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

export interface Owner {
  team: string;
  /** The name of the model in that team. */
  name: string;
}

/** The owner of a model that another team shares. The server puts the team before its name: `vision/chat`. */
export function sharedBy(name: string): Owner | undefined {
  const slash = name.indexOf("/");
  return slash < 1 ? undefined : { team: name.slice(0, slash), name: name.slice(slash + 1) };
}

/** The tags of users, without those that MLflow writes. */
export function ownTags(tags: readonly Pair[]): Pair[] {
  return tags.filter(({ key }) => !/^_?mlflow\b/i.test(key.replace(/^_mlflow_/, "mlflow.")));
}

/** The newest version of a model. A model lists the newest version of each stage. */
export function newest(model: RegisteredModel): ModelVersion | undefined {
  return [...model.latest_versions].sort((a, b) => Number(b.version) - Number(a.version))[0];
}

/** The newest version of each stage, without the stage None. */
export function stagesOf(model: RegisteredModel): { stage: string; version: string }[] {
  return model.latest_versions
    .filter((v) => v.current_stage !== "None" && v.current_stage !== "Archived")
    .map((v) => ({ stage: v.current_stage, version: v.version }))
    .sort((a, b) => a.stage.localeCompare(b.stage));
}

export const WHOSE = ["own", "shared"] as const;
export type Whose = (typeof WHOSE)[number];

/** Whether a model belongs to the team itself, or another team shares it. */
export function belongs(model: { name: string }, whose: Whose | undefined): boolean {
  return whose === undefined || (sharedBy(model.name) !== undefined) === (whose === "shared");
}

/** Searches the name, the description, the tags and the aliases. */
export function fits(model: RegisteredModel, text: string | undefined): boolean {
  const words = (text ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const all = [
    model.name,
    model.description ?? "",
    ...ownTags(model.tags).map((t) => `${t.key}=${t.value}`),
    ...model.aliases.map((a) => `@${a.alias}`),
  ]
    .join(" ")
    .toLowerCase();
  return words.every((word) => all.includes(word));
}
