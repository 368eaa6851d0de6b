import { expect, test } from "vitest";
import type { Gpu, Node } from "@/api/types";
import { mapOf, rackOf, stateOf, sumsOf, teamsOf, usual, words } from "./model";

const gpu = (over: Partial<Gpu>): Gpu =>
  ({
    node: "n1",
    index: 0,
    model: "H100",
    memory_bytes: 80e9,
    declared: false,
    healthy: true,
    free_milli: 1000,
    holders: [],
    price_micros_per_hour: 3_000_000,
    ...over,
  }) as Gpu;
const node = (over: Partial<Node> = {}): Node =>
  ({ name: "n1", state: "ready", labels: { "topology.berth.dev/rack": "r1" }, ...over }) as Node;
const holder = { job: "7", name: "vit", team: "vision", milli: 1000, share: "whole" } as never;
const held = { free_milli: 0, holders: [holder] };

test("a GPU is failed before it is held, and drained only when nobody holds it", () => {
  expect(stateOf(gpu({}), node())).toBe("free");
  expect(stateOf(gpu(held), node({ state: "draining" }))).toBe("held");
  expect(stateOf(gpu({}), node({ state: "draining" }))).toBe("drained");
  expect(stateOf(gpu({ ...held, failed: "XID 79" }), node())).toBe("failed");
  expect(stateOf(gpu({ ...held, idle_ms: 11 * 60_000 }), node())).toBe("idle");
});

test("sums leave what is out of use out of what is free", () => {
  const gpus = [
    gpu({}),
    gpu({ ...held, idle_ms: 20 * 60_000, utilization: 0 }),
    gpu({ healthy: false }),
  ];
  expect(sumsOf(gpus, [node()])).toEqual({
    all: 3000,
    held: 1000,
    free: 1000,
    out: 1000,
    idle: 1000,
    idleMicros: 3_000_000,
    utilization: 0,
  });
});

test("nodes stand in their racks, and teams keep their hue", () => {
  const gpus = [gpu({ ...held, index: 1 }), gpu({})];
  expect(rackOf(node())).toBe("r1");
  const [first] = mapOf(gpus, [node()], "team", teamsOf(gpus), 0);
  expect(first?.rack).toBe("r1");
  expect(first?.gpus.map((g) => g.category)).toEqual([0, null]);
});

test("a GPU of another team says no name", () => {
  const strange = gpu({
    free_milli: 0,
    holders: [{ ...(holder as object), name: "", team: "" } as never],
  });
  expect(words(strange)).toEqual(["a job of another team"]);
});

test("without measurements the map shows teams first", () => {
  expect(usual([gpu(held), gpu({})])).toBe("team");
  expect(usual([gpu({ ...held, utilization: 80 }), gpu({})])).toBe("utilization");
  expect(usual([gpu({})])).toBe("utilization");
});
