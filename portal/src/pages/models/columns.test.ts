import { expect, it } from "vitest";
import { columnsOf } from "./columns";

const ids = (prompts: boolean, shared: boolean) => columnsOf(prompts, shared).map((c) => c.id);

it("the list names the owner of a model only if other teams share models", () => {
  expect(ids(false, true)).toContain("shared");
  expect(ids(false, false)).not.toContain("shared");
  expect(ids(true, true)).toContain("shared");
});

it("a list of prompts has no stages", () => {
  expect(ids(false, false)).toContain("stages");
  expect(ids(true, true)).not.toContain("stages");
});
