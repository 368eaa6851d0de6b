import { expect, test } from "vitest";
import type { Job } from "@/api/types";
import { each, fitting } from "./bulk";

const job = (id: string, state: string, code?: string): Job =>
  ({ id, state, reason_code: code }) as Job;

test("an action is offered for those it makes sense for", () => {
  const jobs = [
    job("1", "running"),
    job("2", "pending", "held"),
    job("3", "paused"),
    job("4", "done"),
    job("5", "stopping"),
  ];
  const ids = (verb: Parameters<typeof fitting>[1]) =>
    fitting(jobs, verb)
      .map((j) => j.id)
      .join("");
  expect(ids("stop")).toBe("123");
  expect(ids("pause")).toBe("1");
  expect(ids("resume")).toBe("23");
  expect(ids("priority")).toBe("1235");
});

test("one that fails leaves the others alone", async () => {
  const seen: number[] = [];
  const out = await each(
    ["1", "2", "3"],
    async (id) => {
      if (id === "2") throw new Error("no");
    },
    (n) => seen.push(n),
    2,
  );
  expect(out.done).toBe(2);
  expect(out.failed.map((f) => f.id)).toEqual(["2"]);
  expect(seen).toEqual([1, 2, 3]);
});
