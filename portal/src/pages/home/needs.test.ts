import { expect, test } from "vitest";
import type { Budget, Job } from "@/api/types";
import { blockedOf, needsOf, thisWeek, today, yesterday } from "./needs";

const now = new Date(2026, 10, 18, 15, 0).getTime();
const hours = (n: number) => new Date(now - n * 3_600_000).toISOString();
const job = (id: string, state: string, more: Partial<Job> = {}) =>
  ({ id, state, name: id, user: "kim", submitted: hours(3), ...more }) as Job;
const budget = (queue: string, spent: number, more: Partial<Budget> = {}) =>
  ({
    queue,
    limit_micros: 100,
    spent_micros: spent,
    thresholds_milli: [],
    action: "notify",
    per: "month",
    ...more,
  }) as Budget;

const kinds = (more: Partial<Parameters<typeof needsOf>[0]>) =>
  needsOf({
    now,
    open: [],
    failed: [],
    idle: [],
    budgets: [],
    teams: new Set(["nlp"]),
    ...more,
  }).map((n) => (n.kind === "budget" ? `budget ${n.budget.queue}` : `${n.kind} ${n.job.id}`));

test("what failed since yesterday is there, and older failures are not", () => {
  expect(
    kinds({
      failed: [
        job("1", "failed", { ended: hours(30) }),
        job("2", "failed", { ended: hours(1) }),
        job("3", "failed", { ended: hours(50) }),
      ],
    }),
  ).toEqual(["failed 2", "failed 1"]);
});

test("a job that holds GPUs and does nothing is told with what that costs", () => {
  const j = job("1", "running", { price_micros_per_hour: 6_000_000 });
  const found = needsOf({
    now,
    open: [j],
    failed: [],
    idle: [{ job: j, idleMs: 30 * 60_000 }],
    budgets: [],
    teams: new Set(),
  });
  expect(found).toMatchObject([{ kind: "idle", wasted: 3_000_000 }]);
  expect(kinds({ idle: [{ job: j, idleMs: 60_000 }] })).toEqual([]);
});

test("of the waiting ones only those that waiting does not help", () => {
  expect(
    kinds({
      open: [
        job("1", "pending", { reason_code: "no-fit" }),
        job("2", "pending", { reason_code: "no-model" }),
        job("3", "paused"),
      ],
    }),
  ).toEqual(["never 2", "paused 3"]);
});

test("a budget counts from its first threshold on, where one has to do with it", () => {
  expect(kinds({ budgets: [budget("nlp", 85), budget("vision", 99)] })).toEqual(["budget nlp"]);
  expect(kinds({ budgets: [budget("nlp", 60)] })).toEqual([]);
  expect(kinds({ budgets: [budget("nlp", 60, { thresholds_milli: [500] })] })).toEqual([
    "budget nlp",
  ]);
});

test("days and weeks begin where the reader is", () => {
  expect(new Date(today(now)).getHours()).toBe(0);
  expect(today(now) - yesterday(now)).toBe(86_400_000);
  expect(new Date(thisWeek(now)).getDay()).toBe(1);
});

test("people who wait are by who waits longest", () => {
  const found = blockedOf([
    job("1", "pending"),
    job("2", "pending", { user: "lee", submitted: hours(9) }),
    job("3", "pending"),
  ]);
  expect(found.map((b) => [b.user, b.jobs.length])).toEqual([
    ["lee", 1],
    ["kim", 2],
  ]);
});
