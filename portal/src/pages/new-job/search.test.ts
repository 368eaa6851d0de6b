import { expect, test } from "vitest";
import { newJobSearch } from "./search";

test("a job to start from leaves the address with what was taken over", () => {
  const first = newJobSearch({ from: "17" });
  expect(first.clone).toBe("17");
  // As the router merges what it read with what the page wants.
  expect(newJobSearch({ from: "17", ...first, clone: undefined }).clone).toBeUndefined();
});
