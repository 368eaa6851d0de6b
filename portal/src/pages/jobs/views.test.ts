import { expect, test } from "vitest";
import { builtIn, current, kept, saved, without } from "./views";

test("a view keeps filters and order, and nothing else", () => {
  expect(kept({ q: "a", open: "7", sort: "-cost", user: undefined })).toEqual({
    q: "a",
    sort: "-cost",
  });
});

test("the one that is seen is found", () => {
  const views = builtIn("kim");
  expect(current(views, { open: "3" })?.name).toBe("All jobs");
  expect(current(views, { user: "kim", state: ["active"] })?.name).toBe("Mine, not ended");
  expect(current(views, { user: "ann" })).toBeUndefined();
  expect(builtIn(undefined).some((v) => v.name.startsWith("Mine"))).toBe(false);
});

test("saving replaces by name, and an empty name saves nothing", () => {
  const one = saved([], " Mine ", { user: "kim" });
  expect(one).toEqual([{ name: "Mine", search: { user: "kim" } }]);
  expect(saved(one, "Mine", { user: "ann" })).toHaveLength(1);
  expect(saved(one, "  ", {})).toEqual(one);
  expect(without(one, "Mine")).toEqual([]);
});
