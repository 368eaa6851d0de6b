import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { may, PERMISSIONS, type Permission } from "./rights";
import type { Me, Role } from "./types";

function person(
  role: Role | undefined,
  cluster: Role | undefined,
  scope: Me["token"]["scope"] = "all",
): Me {
  return {
    user: "kim",
    teams: role ? [{ team: "nlp", role }] : [],
    cluster_role: cluster ?? null,
    token: { id: "t1", name: "x", user: "kim", scope, created: "2026-01-01T00:00:00Z" },
  };
}

const COLUMNS: [Role | undefined, Role | undefined][] = [
  [undefined, undefined],
  ["viewer", undefined],
  ["researcher", undefined],
  ["team_lead", undefined],
  [undefined, "viewer"],
  [undefined, "operator"],
  [undefined, "admin"],
];

function reach(me: Me, permission: Permission): string {
  if (may(me, permission, { team: "other", user: "lee" }).ok) return "all";
  if (may(me, permission, { team: "nlp", user: "lee" }).ok) return "team";
  if (may(me, permission, { team: "nlp", user: "kim" }).ok) return "own";
  return "–";
}

describe("the table is that of docs/authorization.md", () => {
  const text = readFileSync(new URL("../../../docs/authorization.md", import.meta.url), "utf8");
  const rows = text
    .split("\n")
    .filter((l) => /^\| (GET|POST|PUT|PATCH|DELETE) \//.test(l))
    .map((l) =>
      l
        .split("|")
        .slice(1, -1)
        .map((c) => c.trim()),
    );
  test("which has rows", () => expect(rows.length).toBeGreaterThan(60));
  test.each(rows.map((r) => [r[0] as string, r[1] as string, r.slice(3)] as const))(
    "%s takes %s",
    (_, name, cells) => {
      expect(PERMISSIONS).toHaveProperty(name);
      const got = COLUMNS.map(([role, cluster]) =>
        reach(person(role, cluster), name as Permission),
      );
      expect(got).toEqual(cells);
    },
  );
});

test("a token that only reads takes the rest away, and says so", () => {
  const lead = person("team_lead", "admin", "read");
  expect(may(lead, "JobsRead", { team: "nlp" }).ok).toBe(true);
  expect(may(lead, "JobsControl", { team: "nlp" })).toEqual({
    ok: false,
    reason: "You signed in with a token that only reads.",
  });
  expect(may(person("team_lead", undefined, "jobs"), "JobsControl", { team: "nlp" }).ok).toBe(true);
});

test("a refusal says what it would take", () => {
  const kim = person("viewer", undefined);
  expect(may(kim, "JobsControl", { team: "nlp", user: "lee" }).reason).toBe(
    "Takes a team lead in nlp, or its owner; you are a viewer.",
  );
  expect(may(kim, "NodesManage").reason).toBe("Only an operator of the cluster may do this.");
});

test("a role counts in the teams below, and not above", () => {
  const lead = {
    ...person("team_lead", undefined),
    teams: [{ team: "research", role: "team_lead" as Role }],
  };
  const parents = new Map([["nlp", "research"]]);
  expect(may(lead, "JobsControl", { team: "nlp" }, parents).ok).toBe(true);
  expect(may(person("team_lead", undefined), "JobsControl", { team: "research" }, parents).ok).toBe(
    false,
  );
});
