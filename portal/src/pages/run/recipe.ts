// What the recipe of a run says about repeating it. Pure.

import type { Recipe, RecipeDifference } from "@/api/types";
import { reproduceCommand } from "../lineage/model";

export interface Verdict {
  tone: "good" | "warn" | "bad";
  text: string;
}

/** One sentence about the whole recipe. */
export function verdictOf(recipe: Recipe): Verdict {
  if (blocking(recipe).length > 0)
    return { tone: "bad", text: "The run cannot be repeated as it was" };
  if (recipe.differs.length > 0)
    return { tone: "warn", text: "The job can run again, but its result may differ" };
  return { tone: "good", text: "Nothing has changed since the run" };
}

/** Differences with which the server or `berth reproduce --submit` refuses the job. */
export function blocking(recipe: Recipe): readonly RecipeDifference[] {
  return recipe.differs.filter((d) => d.blocks);
}

export function mayDiffer(recipe: Recipe): readonly RecipeDifference[] {
  return recipe.differs.filter((d) => !d.blocks);
}

/** Whether `berth reproduce --submit` refuses without `--anyway`. */
export function needsAnyway(recipe: Recipe): boolean {
  return recipe.source === "artifact" || blocking(recipe).length > 0;
}

/** The file for `--anyway`: the server refuses the hash of data that has changed, so it is removed. */
export function looseFile(recipe: Recipe): string {
  return recipe.data
    .filter((data) => data.now !== data.hash)
    .reduce(
      (file, { version, hash }) => file.replaceAll(`dvc:${version}#${hash}`, `dvc:${version}`),
      recipe.file,
    );
}

export function submitCommand(recipe: Recipe): string {
  const anyway = needsAnyway(recipe) ? " --anyway" : "";
  return `${reproduceCommand(recipe.run, recipe.team)} --submit${anyway}`;
}

export function saveCommand(recipe: Recipe): string {
  return `${reproduceCommand(recipe.run, recipe.team)} > again.yaml`;
}
