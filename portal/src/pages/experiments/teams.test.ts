import { expect, it } from "vitest";
import type { Experiment } from "@/api/tracking";
import { plainName } from "./teams";

const named = (name: string, team = "nlp"): Experiment => ({
  experiment_id: "3",
  name,
  artifact_location: `mlflow-artifacts:/${team}/3`,
  lifecycle_stage: "active",
  creation_time: 1,
  last_update_time: 1,
  tags: [],
});

it("an experiment is called the same whichever team the server was asked for", () => {
  expect(plainName(named("nlp/digits"))).toBe("digits");
  expect(plainName(named("digits"))).toBe("digits");
});

it("a slash that belongs to the name stays", () => {
  expect(plainName(named("vision/digits"))).toBe("vision/digits");
  expect(plainName(named("nlp/a/b"))).toBe("a/b");
});
