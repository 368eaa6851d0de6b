import { describe, expect, it } from "vitest";
import type { ModelVersion, RegisteredModel } from "@/api/tracking";
import { belongs, fits, isPrompt, newest, ownTags, promptText, sharedBy, stagesOf } from "./model";
import { byName, type DataVersion, fits as dataFits, dataName, parentOf } from "./versions-of-data";

const version = (n: number, stage = "None"): ModelVersion => ({
  name: "chat",
  version: String(n),
  creation_timestamp: n,
  last_updated_timestamp: n,
  user_id: "kim",
  current_stage: stage,
  source: "runs:/0a1b/model",
  status: "READY",
  tags: [],
  aliases: [],
});
const chat: RegisteredModel = {
  name: "chat",
  creation_timestamp: 1,
  last_updated_timestamp: 2,
  user_id: "kim",
  description: "Answers questions",
  tags: [{ key: "task", value: "qa" }],
  aliases: [{ alias: "champion", version: "9" }],
  latest_versions: [version(9, "Production"), version(10), version(4, "Archived")],
};

describe("a registered model", () => {
  it("shows its newest version by its number, whatever its stage", () => {
    expect(newest(chat)?.version).toBe("10");
    expect(newest({ ...chat, latest_versions: [] })).toBeUndefined();
  });

  it("shows the stages that are in use", () => {
    expect(stagesOf(chat)).toEqual([{ stage: "Production", version: "9" }]);
  });

  it("is found by its name, description, tags and aliases", () => {
    for (const text of ["CHA", "answers", "task=qa", "@champion", "chat qa", "", undefined])
      expect(fits(chat, text), text).toBe(true);
    expect(fits(chat, "chat vision")).toBe(false);
  });
});

describe("a model of another team", () => {
  const theirs = { ...chat, name: "vision/chat" };

  it("has the team that shares it before its name", () => {
    expect(sharedBy(theirs.name)).toEqual({ team: "vision", name: "chat" });
    expect(sharedBy(chat.name)).toBeUndefined();
  });

  it("is listed with the own models or apart from them, and found by its team", () => {
    const names = (whose?: "own" | "shared") =>
      [chat, theirs].filter((m) => belongs(m, whose)).map((m) => m.name);
    expect(names()).toEqual(["chat", "vision/chat"]);
    expect(names("own")).toEqual(["chat"]);
    expect(names("shared")).toEqual(["vision/chat"]);
    expect(fits(theirs, "vision")).toBe(true);
  });
});

describe("a prompt", () => {
  const tag = { key: "mlflow.prompt.is_prompt", value: "true" };
  it("is a model with the tag that says so", () => {
    expect(isPrompt({ tags: [tag] })).toBe(true);
    expect(isPrompt({ tags: [{ ...tag, value: "false" }] })).toBe(false);
    expect(isPrompt(chat)).toBe(false);
  });

  it("shows its text as it is, and a conversation in lines", () => {
    const of = (value: string) => ({ tags: [{ key: "mlflow.prompt.text", value }] });
    expect(promptText(of("Answer {{question}}"))).toBe("Answer {{question}}");
    expect(promptText(of('[{"role":"user"}]'))).toContain('\n    "role": "user"\n');
    expect(promptText(of("17"))).toBe("17");
    expect(promptText({ tags: [] })).toBeUndefined();
  });

  it("keeps MLflow's own tags out of those that people set", () => {
    const keys = ["mlflow.prompt.text", "_mlflow_prompt_type", "task", "mlflower"];
    expect(ownTags(keys.map((key) => ({ key, value: "" }))).map((t) => t.key)).toEqual([
      "task",
      "mlflower",
    ]);
  });
});

describe("a version of data", () => {
  const c4: DataVersion = {
    team: "nlp",
    name: "c4",
    version: 3,
    hash: "0a1b.dir",
    bytes: 6,
    files: 1,
    parent: 2,
    created: "2026-11-19T12:00:00Z",
    by: "kim",
    note: "without doubles",
  };

  it("is named as commands and job files name it, and knows its parent", () => {
    expect(dataName(c4)).toBe("c4@v3");
    expect(parentOf(c4)).toBe("c4@v2");
    expect(parentOf({ ...c4, parent: null })).toBeUndefined();
  });

  it("is found by its name, its maker, its note and its hash", () => {
    for (const text of ["c4@v3", "kim doubles", "0A1B"])
      expect(dataFits(c4, text), text).toBe(true);
    expect(dataFits(c4, "c4@v2")).toBe(false);
  });

  it("stands below the newer ones of its name, ten after nine", () => {
    const of = (name: string, version: number) => ({ ...c4, name, version });
    const found = byName([of("c4", 9), of("b", 1), of("c4", 10)]).map(dataName);
    expect(found).toEqual(["b@v1", "c4@v10", "c4@v9"]);
  });
});
