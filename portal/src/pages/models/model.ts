// Registered models as they are listed. Pure.

import { type ModelVersion, type Pair, type RegisteredModel, record } from "@/api/tracking";

const IS_PROMPT = "mlflow.prompt.is_prompt";
const PROMPT_TEXT = "mlflow.prompt.text";

/** Prompts are registered models with a tag. A search that does not name the tag leaves them out. */
export const PROMPTS = `tags.\`${IS_PROMPT}\` = 'true'`;

export function isPrompt(model: { tags: readonly Pair[] }): boolean {
  return record(model.tags)[IS_PROMPT] === "true";
}

/** The text of a version of a prompt; a conversation is JSON, and reads better in lines. */
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

/** Tags that people set: those of MLflow's own say what it keeps in them. */
export function ownTags(tags: readonly Pair[]): Pair[] {
  return tags.filter(({ key }) => !/^_?mlflow\b/i.test(key.replace(/^_mlflow_/, "mlflow.")));
}

/** The newest of the versions that a model shows: of each stage it shows the newest. */
export function newest(model: RegisteredModel): ModelVersion | undefined {
  return [...model.latest_versions].sort((a, b) => Number(b.version) - Number(a.version))[0];
}

/** Which version is the newest in each stage, as far as a stage says something. */
export function stagesOf(model: RegisteredModel): { stage: string; version: string }[] {
  return model.latest_versions
    .filter((v) => v.current_stage !== "None" && v.current_stage !== "Archived")
    .map((v) => ({ stage: v.current_stage, version: v.version }))
    .sort((a, b) => a.stage.localeCompare(b.stage));
}

/** By its name, its description, its tags and its aliases. */
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
