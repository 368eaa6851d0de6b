import { expect, test } from "vitest";
import { parseSearch, stringifySearch } from "@/lib/search";
import { asked, countOf, flags, sinceOf, statesOf, toggled, totalOf } from "./filters";
import { jobsSearch } from "./search";

test("the address says what is asked, and back", () => {
  const text = "?q=llama&state=pending,running&user=kim&since=7d&sort=-cost";
  const search = jobsSearch(parseSearch(text.slice(1)));
  expect(search).toMatchObject({ q: "llama", state: ["pending", "running"], sort: "-cost" });
  expect(stringifySearch({ ...search })).toBe(text);
  const now = Date.parse("2026-11-19T12:00:30Z");
  expect(asked(search, now)).toMatchObject({
    text: "llama",
    state: "pending,running",
    user: "kim",
    sort: "-cost",
    since: "2026-11-12T12:00:00.000Z",
  });
});

test("what makes no sense in an address is dropped", () => {
  expect(jobsSearch({ sort: "-evil", state: "", q: 7 })).toMatchObject({
    sort: undefined,
    state: undefined,
    q: "7",
  });
  expect(statesOf({ state: ["nonsense", "done"] })).toEqual(["done"]);
  expect(sinceOf("whenever", 0)).toBeUndefined();
});

test("a chip joins and leaves; all or none are the same", () => {
  expect(toggled({}, "failed")).toEqual(["failed"]);
  expect(toggled({ state: ["failed"] }, "failed")).toBeUndefined();
  expect(toggled({}, "running")).toEqual(["starting", "running", "stopping"]);
  expect(toggled({ state: ["active"] }, "pending")).toEqual([
    "starting",
    "running",
    "stopping",
    "paused",
  ]);
  expect(toggled({ state: ["active", "done", "failed"] }, "cancelled")).toBeUndefined();
});

test("counts go by chips", () => {
  const counts = { running: 3, starting: 1, done: 10 };
  expect(countOf(counts, "running")).toBe(4);
  expect(totalOf(counts, {})).toBe(14);
  expect(totalOf(counts, { state: ["done"] })).toBe(10);
  expect(totalOf(undefined, {})).toBeUndefined();
});

test("the command gives the same rows", () => {
  expect(flags({ user: "kim" }, "kim")).toMatchObject({ "--all": true, "--mine": true });
  expect(flags({ user: "kim", state: ["active"] }, "ann")).toMatchObject({
    "--all": false,
    "--mine": false,
    "--user": "kim",
  });
});
