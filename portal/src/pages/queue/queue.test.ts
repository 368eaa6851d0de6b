import { expect, test } from "vitest";
import type { Job, Queue, Share } from "@/api/types";
import { classFor, effectOf, inOrder, nextOf } from "./line";
import { rowsOf, shown, widest, within } from "./tree";

const queue = (name: string, parent: string | null, quota: number, used: number, waiting = 0) =>
  ({
    name,
    parent,
    quota_milli: quota * 1000,
    used_milli: used * 1000,
    fair_share_milli: quota * 1000,
    running: used > 0 ? 1 : 0,
    waiting,
    overcommitted: false,
  }) as Queue;

const rows = rowsOf(
  [
    queue("vision", "lab", 2, 3),
    queue("nlp", "lab", 4, 3, 2),
    queue("lab", null, 8, 6),
    queue("lost", "unseen", 1, 0),
  ],
  [
    {
      queue: "nlp",
      lent_milli: 500,
      borrowed_milli: 0,
      demand_milli: 13_000,
      weight_milli: 2000,
      credits_gpu_s: 31,
      text: "nlp is promised 4 GPUs.",
    } as Share,
  ],
  [],
);

test("the tree has parents before children, and sums what runs and waits below", () => {
  expect(rows.map((r) => [r.level, r.name])).toEqual([
    [1, "lab"],
    [2, "nlp"],
    [2, "vision"],
    [1, "lost"],
  ]);
  expect(rows[0]).toMatchObject({ running: 3, waiting: 2, children: ["nlp", "vision"] });
  expect(rows[1]).toMatchObject({ lent: 0.5, demand: 13, weight: 2, quota: 4 });
  // Without a share it is counted from what is known.
  expect(rows[2]).toMatchObject({ borrowed: 1 });
  expect(widest(rows)).toBe(8);
});

test("a closed queue hides all below it, and a filter takes them along", () => {
  expect(shown(rows, new Set(["lab"])).map((r) => r.name)).toEqual(["lab", "lost"]);
  expect([...within(rows, "lab")]).toEqual(["lab", "nlp", "vision"]);
});

const job = (
  id: string,
  team: string,
  position: number | null,
  priority: number,
  eta: string | null,
  reason_code = "no-fit",
) =>
  ({
    id,
    team,
    position,
    priority,
    eta,
    reason_code,
    submitted: `2026-01-0${id}T00:00:00Z`,
  }) as Job;

const a = job("1", "nlp", 2, 50, "2026-02-01T10:00:00Z");
const b = job("2", "nlp", 1, 100, "2026-02-01T12:00:00Z");
const c = job("3", "vision", 1, 50, null);
const d = job("4", "nlp", 3, 10, "2026-02-01T13:00:00Z");

test("one queue is in its own order, several are by when they start", () => {
  expect(inOrder([a, b, d], true).map((j) => j.id)).toEqual(["2", "1", "4"]);
  expect(inOrder([a, b, c, d], false).map((j) => j.id)).toEqual(["1", "2", "4", "3"]);
});

test("next is whoever nothing stands in the way of, or else the first to start", () => {
  expect(nextOf([a, b, c])?.id).toBe("1");
  expect(nextOf([a, b, job("9", "vision", 1, 50, null, "next")])?.id).toBe("9");
  expect(nextOf([c])).toBeUndefined();
});

test("another priority says whom it passes and whom it lets go first", () => {
  expect(effectOf(d, 60, [a, b, c, d]).passes.map((j) => j.id)).toEqual(["1"]);
  expect(effectOf(b, 10, [a, b, c, d]).lets.map((j) => j.id)).toEqual(["1"]);
});

test("where a job is dropped says which class it takes", () => {
  const classes = [
    { name: "low", value: 10 },
    { name: "normal", value: 50 },
    { name: "high", value: 100 },
  ];
  expect(classFor(d, a, classes)).toBe("high");
  expect(classFor(b, a, classes)).toBe("low");
  expect(classFor(a, b, classes)).toBeUndefined();
  expect(classFor(a, c, classes)).toBeUndefined();
  expect(classFor(a, a, classes)).toBeUndefined();
});
