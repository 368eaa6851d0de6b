import { expect, test } from "vitest";
import { ApiError } from "@/api/error";
import type { Me } from "@/api/types";
import { readDoc } from "./doc";
import { byKey, problemsOf } from "./problems";
import { classesFor, className, teamsFor } from "./rights";

const job = readDoc("name: a\ntime: zz\nteam: nlp\n");

function refused(
  code: string,
  errors: { path: string; message: string; line?: number; column?: number }[],
) {
  return new ApiError({ status: 400, title: "x", detail: "d", code: code as never, errors });
}

test("a mistake of the API stands at its line and at its field", () => {
  const found = problemsOf(
    job,
    refused("BRT0001", [
      {
        path: "time",
        line: 2,
        column: 7,
        message: "`time`: found `zz`, expected a length of time",
      },
    ]),
    undefined,
  );
  expect(found).toEqual([
    {
      key: "time",
      line: 2,
      column: 7,
      severity: "error",
      message: "Found `zz`, expected a length of time",
    },
  ]);
});

test("a mistake without a line is put where its key stands", () => {
  const found = problemsOf(
    job,
    refused("BRT0002", [{ path: "team", message: "no such team" }]),
    undefined,
  );
  expect(found[0]).toMatchObject({ key: "team", line: 3, column: 1 });
});

test("a refusal of rights belongs to the field it is about", () => {
  expect(problemsOf(job, refused("BRT0006", []), undefined)[0]).toMatchObject({
    key: "team",
    line: 3,
  });
  expect(problemsOf(job, refused("BRT0029", []), undefined)[0]?.key).toBe("priority");
  expect(problemsOf(job, refused("BRT0019", []), undefined)).toEqual([]);
});

test("what is no YAML is told before anything else", () => {
  const found = problemsOf(readDoc("a: [\n"), refused("BRT0001", []), undefined);
  expect(found.length).toBeGreaterThan(0);
  expect(found.every((p) => p.severity === "error" && p.key === "")).toBe(true);
});

test("an error of a key goes before its warning", () => {
  const map = byKey([
    { key: "scale", message: "w", severity: "warning" },
    { key: "scale", message: "e", severity: "error" },
  ]);
  expect(map.get("scale")?.message).toBe("e");
});

const me = (teams: [string, string][], cluster_role: string | null = null) =>
  ({
    user: "kim",
    cluster_role,
    teams: teams.map(([team, role]) => ({ team, role })),
  }) as unknown as Me;

test("one is offered the classes and teams that one may use", () => {
  expect(classesFor(me([["nlp", "researcher"]]))).toEqual(["low", "normal", "high"]);
  expect(classesFor(me([], "admin"))).toContain("critical");
  const teams = [{ name: "lab" }, { name: "nlp" }, { name: "vision" }];
  const parents = new Map([["nlp", "lab"]]);
  expect(
    teamsFor(
      me([
        ["lab", "team_lead"],
        ["vision", "viewer"],
      ]),
      teams,
      parents,
    ),
  ).toEqual(["lab", "nlp"]);
  expect(teamsFor(me([], "admin"), teams, parents)).toEqual(["lab", "nlp", "vision"]);
  expect(className(100)).toBe("high");
  expect(className(77)).toBe("77");
});
