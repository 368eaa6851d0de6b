import { expect, it } from "vitest";
import { nameFilter } from "./filter";

it("a name is quoted so that the grammar reads it as one", () => {
  expect(nameFilter("chat")).toBe("name = 'chat'");
  expect(nameFilter("kim's chat")).toBe('name = "kim\'s chat"');
  expect(nameFilter(`a'b"c`)).toBe(`name LIKE 'a_b"c'`);
});
