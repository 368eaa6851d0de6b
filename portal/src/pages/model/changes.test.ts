import { describe, expect, it } from "vitest";
import type { ModelVersion, RegisteredModel } from "@/api/tracking";
import type { AuditRow } from "@/api/types";
import { fromAudit, fromFields } from "./changes";

const model: RegisteredModel = {
  name: "chat",
  creation_timestamp: 1000,
  last_updated_timestamp: 5000,
  user_id: "kim",
  tags: [],
  aliases: [],
  latest_versions: [],
};
const version = (n: number, made: number, changed = made, who = "kim") =>
  ({
    version: String(n),
    creation_timestamp: made,
    last_updated_timestamp: changed,
    user_id: who,
  }) as ModelVersion;
const row = (seq: number, what: string, detail: object, target = "model nlp/chat") =>
  ({
    seq,
    at: new Date(seq * 1000).toISOString(),
    who: "ada",
    what,
    target,
    outcome: "ok",
    detail: JSON.stringify(detail),
  }) as AuditRow;

describe("the changes of a model", () => {
  it("are those that its fields tell, newest first", () => {
    const found = fromFields(model, [version(1, 2000), version(2, 3000, 4000, "ada")]);
    expect(found.map((c) => [c.at, c.who, c.what])).toEqual([
      [5000, undefined, "The model was last changed"],
      [4000, undefined, "Version 2 was last changed"],
      [3000, "ada", "made version 2"],
      [2000, "kim", "made version 1"],
      [1000, "kim", "registered it"],
    ]);
  });

  it("say nothing twice where the last change was a version", () => {
    const found = fromFields({ ...model, last_updated_timestamp: 2000 }, [version(1, 2000)]);
    expect(found.map((c) => c.what)).toEqual(["made version 1", "registered it"]);
  });

  it("are those of the audit log where one may read it", () => {
    const found = fromAudit(
      [
        row(3, "set_registered_model_alias", { alias: "champion", version: "2" }),
        row(2, "transition_model_version_stage", { version: 2 }),
        row(4, "delete_model_version", { version: "1" }, "model nlp/other"),
        { ...row(5, "delete_registered_model", {}), outcome: "refused BRT0006" },
        { ...row(6, "sealed_model", {}), detail: "no JSON" },
      ],
      "nlp",
      "chat",
    );
    expect(found.map((c) => [c.who, c.what, c.version])).toEqual([
      ["ada", "sealed model", undefined],
      ["ada", "let champion name version 2", "2"],
      ["ada", "changed the stage of version 2", "2"],
    ]);
  });

  it("say with whom a team shares it", () => {
    const rows = [
      row(2, "share_model", { team: "audio" }),
      row(3, "share_model", { team: "*" }),
      row(4, "unshare_model", { team: "audio" }),
    ];
    expect(fromAudit(rows, "nlp", "chat").map((c) => c.what)).toEqual([
      "no longer shares it with team audio",
      "shared it with every team",
      "shared it with team audio",
    ]);
  });
});
