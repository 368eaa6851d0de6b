import { expect, test } from "vitest";
import type { Recipe, RecipeDifference } from "@/api/types";
import { looseFile, needsAnyway, submitCommand, verdictOf } from "./recipe";

const HASH = "d751713988987e9331980363e24189ce.dir";

const recipe = (change: Partial<Recipe> = {}): Recipe => ({
  run: "0b3c",
  job: "17",
  team: "nlp",
  source: "job",
  file: `data:\n  /data: dvc:c4@v3#${HASH}\n  /more: dvc:c4@v31#${HASH}\nrun: make\n`,
  job_file: {},
  data: [],
  differs: [],
  ...change,
});

const difference = (blocks: boolean): RecipeDifference => ({
  what: "data c4@v3",
  // biome-ignore lint/suspicious/noThenProperty: it is a field of the API, and not a promise
  then: HASH,
  now: "removed",
  next: "push it again",
  blocks,
});

test("a run is repeated as it was until something differs", () => {
  expect(verdictOf(recipe()).tone).toBe("good");
  expect(verdictOf(recipe({ differs: [difference(false)] })).tone).toBe("warn");
  expect(verdictOf(recipe({ differs: [difference(false), difference(true)] })).tone).toBe("bad");
});

test("only a blocking difference and a file of uncertain origin need --anyway", () => {
  const plain = recipe({ differs: [difference(false)] });
  expect(needsAnyway(plain)).toBe(false);
  expect(submitCommand(plain)).toBe("berth reproduce run:0b3c --team nlp --submit");
  for (const one of [recipe({ source: "artifact" }), recipe({ differs: [difference(true)] })]) {
    expect(needsAnyway(one)).toBe(true);
    expect(submitCommand(one)).toBe("berth reproduce run:0b3c --team nlp --submit --anyway");
  }
});

test("the loose file keeps the hash of data that is unchanged and of other versions", () => {
  const had = (now: string | null) =>
    recipe({ data: [{ path: "/data", version: "c4@v3", hash: HASH, now }] });
  expect(looseFile(had(HASH))).toBe(recipe().file);
  for (const now of [null, "0cc175b9c0f1b6a831c399e269772661"])
    expect(looseFile(had(now))).toBe(
      `data:\n  /data: dvc:c4@v3\n  /more: dvc:c4@v31#${HASH}\nrun: make\n`,
    );
});
