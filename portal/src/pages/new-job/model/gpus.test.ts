import { expect, test } from "vitest";
import { readGpus, writeGpus } from "./gpus";

test("every form of the grammar comes back as it was", () => {
  for (const text of [
    "8",
    "H100:8",
    "L4",
    "24GB+",
    "24GB+:2",
    "0.5",
    "H100:0.5",
    "10GB",
    "H100:10GB",
    "A100/1g.10gb",
    "A100/1g.10gb:2",
    "shared",
    "shared:2",
    "L4/shared",
    "L4/shared:2",
  ]) {
    const wish = readGpus(text);
    expect(wish, text).toBeDefined();
    expect(writeGpus(wish as NonNullable<typeof wish>), text).toBe(text);
  }
  expect(writeGpus(readGpus(["H100:8", "A100:8"]) as never)).toEqual(["H100:8", "A100:8"]);
});

test("nothing asked for is nothing written", () => {
  expect(readGpus(undefined)).toEqual({ kind: "whole", amount: "0", profile: "", models: [] });
  expect(writeGpus({ kind: "whole", amount: "0", profile: "", models: [] })).toBeUndefined();
});

test("what the form has no fields for is left to the YAML", () => {
  for (const value of [["H100:8", "A100:4"], { H100: "8" }, "H100:x", ["8", "H100:8"], ""])
    expect(readGpus(value as never), JSON.stringify(value)).toBeUndefined();
});
