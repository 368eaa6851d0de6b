import { expect, test } from "vitest";
import { teamOrder } from "./tones";

test("a team has the same colour on a page that shows two teams and on one that shows all", () => {
  const all = ["vision", "nlp", "speech"];
  expect(teamOrder(all, ["vision", "nlp"]).indexOf("vision")).toBe(
    teamOrder(all, all).indexOf("vision"),
  );
});

test("with more teams than hues, those of a page have different ones", () => {
  const all = Array.from({ length: 20 }, (_, i) => `team-${String(i).padStart(2, "0")}`);
  expect(teamOrder(all, ["team-18", "team-03"])).toEqual(["team-03", "team-18"]);
});

test("a team that is no more has a colour, too", () => {
  expect(teamOrder(["nlp"], ["gone"])).toEqual(["gone", "nlp"]);
});
