import { expect, it } from "vitest";
import { oneTeam } from "./one-team";
import type { Me } from "./types";

const me = (teams: string[], default_team?: string) =>
  ({
    default_team: default_team ?? null,
    teams: teams.map((team) => ({ team, role: "viewer" })),
  }) as unknown as Me;

it("the team is the chosen one, else one's own, else the one that everybody has", () => {
  expect(oneTeam(me(["nlp"], "nlp"), "vision")).toBe("vision");
  expect(oneTeam(me(["vision", "nlp"], "vision"), undefined)).toBe("vision");
  expect(oneTeam(me(["vision", "nlp"]), undefined)).toBe("nlp");
  expect(oneTeam(me([]), undefined)).toBe("default");
});

it("nothing is asked for before it is known who asks", () => {
  expect(oneTeam(undefined, undefined)).toBeUndefined();
});
