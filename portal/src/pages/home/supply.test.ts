import { expect, test } from "vitest";
import type { Gpu, Node } from "@/api/types";
import { arrayOf, byModel, grouped, heldIdle, troubleOf } from "./supply";

const gpu = (node: string, index: number, more: Partial<Gpu> = {}) =>
  ({
    node,
    index,
    model: "H100",
    free_milli: 1000,
    healthy: true,
    holders: [],
    price_micros_per_hour: 2e6,
    ...more,
  }) as unknown as Gpu;
const held = (job: string, team: string) => [
  { job, name: `job ${job}`, team, milli: 1000, share: "whole" },
];

test("free GPUs are counted by model, broken ones are not free", () => {
  const found = byModel([
    gpu("a", 0),
    gpu("a", 1, { free_milli: 500 }),
    gpu("a", 2, { healthy: false }),
    gpu("b", 0, { model: "L4" }),
  ]);
  expect(found).toEqual([
    { model: "H100", total: 3, free: 1.5, broken: 1 },
    { model: "L4", total: 1, free: 1, broken: 0 },
  ]);
});

test("trouble is by how bad it is, and a node that is down says so once", () => {
  const nodes = [
    { name: "a", state: "cordoned" },
    { name: "b", state: "failed", trouble: "no heartbeat" },
    { name: "c", state: "ready" },
  ] as Node[];
  const found = troubleOf(nodes, [
    gpu("b", 0, { healthy: false }),
    gpu("c", 3, { failed: "XID 79" }),
  ]);
  expect(found.map((t) => [t.node, t.gpu, t.text])).toEqual([
    ["b", undefined, "no heartbeat"],
    ["c", 3, "XID 79"],
    ["a", undefined, "it takes no new work"],
  ]);
});

test("a job is idle when none of its GPUs computes, and never when that is not measured", () => {
  const found = heldIdle(
    [
      gpu("a", 0, { holders: held("1", "nlp"), utilization: 0 }),
      gpu("a", 1, { holders: held("1", "nlp"), utilization: 0 }),
      gpu("a", 2, { holders: held("2", "nlp"), utilization: 0 }),
      gpu("a", 3, { holders: held("2", "nlp"), utilization: 80 }),
      gpu("a", 4, { holders: held("3", "nlp"), utilization: null }),
      gpu("a", 5, { holders: held("4", "vision"), utilization: 0 }),
    ],
    new Set(["nlp"]),
  );
  expect(found).toEqual([{ job: "1", name: "job 1", team: "nlp", gpus: 2, rate: 4e6 }]);
});

test("elements of an array that wait are one entry, in the place of the first", () => {
  const jobs = ["7_2", "9", "7_3", "12_0"].map((id) => ({ id }));
  expect(grouped(jobs).map((g) => [arrayOf(g.job.id), g.elements])).toEqual([
    ["7", 2],
    ["9", 1],
    ["12", 1],
  ]);
});
