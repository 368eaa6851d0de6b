import { describe, expect, it } from "vitest";
import { shareChoices, teamWords } from "./shares";

describe("a model", () => {
  const teams = ["vision", "nlp", "audio"];

  it("can be shared with every team and with each other team", () => {
    expect(shareChoices(teams, "vision", [])).toEqual(["*", "audio", "nlp"]);
  });

  it("is not offered to teams that have it already", () => {
    expect(shareChoices(teams, "vision", ["audio"])).toEqual(["*", "nlp"]);
    expect(shareChoices(teams, "vision", ["*"])).toEqual(["audio", "nlp"]);
  });
});

it("names a team in a sentence", () => {
  expect([teamWords("audio"), teamWords("*")]).toEqual(["team audio", "every team"]);
});
