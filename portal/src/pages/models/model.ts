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
