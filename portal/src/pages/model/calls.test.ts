import { describe, expect, it, vi } from "vitest";
import { changeModel, type ModelChange, shareModel } from "./calls";

vi.stubGlobal("location", { origin: "http://berth.example" });

async function asked(change: ModelChange) {
  let request: Request | undefined;
  vi.stubGlobal("fetch", async (made: Request) => {
    request = made;
    return Response.json({});
  });
  await changeModel("nlp", "chat", change);
  const made = request as unknown as Request;
  const path = new URL(made.url).pathname.replace("/ajax-api/2.0/mlflow/", "");
  expect(made.headers.get("x-berth-team")).toBe("nlp");
  return [`${made.method} ${path}`, await made.json()];
}

describe("a change", () => {
  it("is of the version where one is named, and of the model where none is", async () => {
    const description = "x";
    expect(await asked({ kind: "describe", description })).toEqual([
      "PATCH registered-models/update",
      { name: "chat", description },
    ]);
    expect(await asked({ kind: "describe", version: "3", description })).toEqual([
      "PATCH model-versions/update",
      { name: "chat", version: "3", description },
    ]);
    expect(await asked({ kind: "delete" })).toEqual([
      "DELETE registered-models/delete",
      { name: "chat" },
    ]);
    expect(await asked({ kind: "delete", version: "3" })).toEqual([
      "DELETE model-versions/delete",
      { name: "chat", version: "3" },
    ]);
    expect(await asked({ kind: "untag", version: "3", key: "a" })).toEqual([
      "DELETE model-versions/delete-tag",
      { name: "chat", version: "3", key: "a" },
    ]);
  });

  it("of an alias is one of the model, with the version that it names", async () => {
    expect(await asked({ kind: "alias", alias: "champion", version: "3" })).toEqual([
      "POST registered-models/alias",
      { name: "chat", version: "3", alias: "champion" },
    ]);
    expect(await asked({ kind: "unalias", alias: "champion" })).toEqual([
      "DELETE registered-models/alias",
      { name: "chat", alias: "champion" },
    ]);
  });

  it("of a stage says whether the others are archived", async () => {
    expect(
      await asked({ kind: "stage", version: "3", stage: "Production", archive: true }),
    ).toEqual([
      "POST model-versions/transition-stage",
      { name: "chat", version: "3", stage: "Production", archive_existing_versions: true },
    ]);
  });
});

describe("a share", () => {
  async function sent(team: string, shared: boolean) {
    let request: Request | undefined;
    vi.stubGlobal("fetch", async (made: Request) => {
      request = made;
      return Response.json({ teams: [] });
    });
    await shareModel("nlp", "chat model", { with: team, shared });
    return `${request?.method} ${new URL(request?.url ?? "").pathname}`;
  }

  it("begins and ends with a team, or with every team", async () => {
    expect(await sent("audio", true)).toBe("PUT /v1/models/nlp/chat%20model/shares/audio");
    expect(await sent("audio", false)).toBe("DELETE /v1/models/nlp/chat%20model/shares/audio");
    expect(await sent("*", true)).toBe("PUT /v1/models/nlp/chat%20model/shares/*");
  });
});
