import { describe, expect, it } from "vitest";
import type { TrackedRun } from "@/api/tracking";
import {
  figure,
  labelOf,
  metricText,
  namesOf,
  numberAt,
  numeric,
  type Row,
  rowOf,
  sortRows,
  split,
  textAt,
  usualColumns,
} from "./row";

function row(id: string, change: Partial<Row> = {}): Row {
  return {
    id,
    name: `run-${id}`,
    user: "kim",
    status: "FINISHED",
    deleted: false,
    start: 1000,
    end: 5000,
    params: {},
    metrics: {},
    tags: {},
    ...change,
  };
}

const WIRE: TrackedRun = {
  info: {
    run_id: "0a1b",
    run_name: "first",
    experiment_id: "3",
    user_id: "kim",
    status: "RUNNING",
    lifecycle_stage: "active",
    artifact_uri: "mlflow-artifacts:/nlp/3/0a1b/artifacts",
    start_time: 1000,
  },
  data: {
    metrics: [
      { key: "loss", value: 0.25, timestamp: 2000, step: 7 },
      { key: "ppl", value: "NaN", timestamp: 2000, step: 7 },
    ],
    params: [{ key: "lr", value: "1e-4" }],
    tags: [{ key: "berth.job", value: "17" }],
  },
  inputs: { dataset_inputs: [], model_inputs: [] },
  outputs: { model_outputs: [] },
};

describe("a run as a row", () => {
  const found = rowOf(WIRE);
  it("has its newest metrics as numbers, also those that are none", () => {
    expect(found.metrics.loss).toBe(0.25);
    expect(found.metrics.ppl).toBeNaN();
  });
  it("is read by keys with dots in their names", () => {
    expect(split("metrics.berth.cost")).toEqual({ kind: "metrics", name: "berth.cost" });
    expect(split("start")).toEqual({ kind: "attributes", name: "start" });
    expect(textAt(found, "tags.berth.job")).toBe("17");
    expect(numberAt(found, "params.lr")).toBe(0.0001);
    expect(numberAt(found, "metrics.absent")).toBeUndefined();
  });
  it("has lasted until now as long as it has no end", () => {
    expect(numberAt(found, "duration", 61_000)).toBe(60_000);
    expect(numberAt(row("a"), "duration", 61_000)).toBe(4000);
  });
});

describe("numbers", () => {
  it("are found in params where they are some", () => {
    expect(["1e-4", " 3 ", "", "adam", "0x10"].map((t) => numeric(t))).toEqual([
      0.0001,
      3,
      undefined,
      undefined,
      16,
    ]);
  });
  it("keep five digits that count", () => {
    expect([0.123456, 12345.678, 0, 123456.7, 1e-9, 2.5e8, -0.5].map(figure)).toEqual([
      "0.12346",
      "12346",
      "0",
      "123456.7",
      "1e−9",
      "2.5e8",
      "−0.5",
    ]);
    expect([Number.NaN, Number.POSITIVE_INFINITY, undefined].map(figure)).toEqual([
      "NaN",
      "∞",
      "–",
    ]);
  });
  it("are money where they are Berth's cost", () => {
    expect(metricText("berth.cost", 12.5)).toBe("$12.50");
    expect(metricText("cost", 12.5)).toBe("12.5");
    expect(labelOf("metrics.berth.cost")).toBe("Cost");
  });
});

describe("names and columns", () => {
  const rows = [
    row("a", { params: { lr: "0.1", seed: "1" }, metrics: { loss: 1, "berth.cost": 3 } }),
    row("b", { params: { lr: "0.2", seed: "1" }, metrics: { acc: 0.5 } }),
  ];
  it("are those of all runs, Berth's own last", () => {
    expect(namesOf(rows)).toEqual({
      metrics: ["acc", "loss", "berth.cost"],
      params: ["lr", "seed"],
      tags: [],
    });
  });
  it("begin with params that differ, and always have the cost", () => {
    const usual = usualColumns(rows);
    expect(usual).toContain("params.lr");
    expect(usual).not.toContain("params.seed");
    expect(usual).toContain("metrics.berth.cost");
  });
});

describe("an order", () => {
  const rows = [
    row("none"),
    row("nan", { metrics: { loss: Number.NaN } }),
    row("high", { metrics: { loss: 2 }, params: { lr: "10" } }),
    row("low", { metrics: { loss: 1 }, params: { lr: "9" } }),
  ];
  const ids = (sort: string) => sortRows(rows, sort, 0).map((r) => r.id);
  it("has NaN after the numbers and runs without the value last, both ways", () => {
    expect(ids("metrics.loss")).toEqual(["low", "high", "nan", "none"]);
    expect(ids("-metrics.loss")).toEqual(["high", "low", "nan", "none"]);
  });
  it("of params compares numbers as numbers", () => {
    expect(ids("params.lr").slice(0, 2)).toEqual(["low", "high"]);
  });
  it("is as the server gave it where none is asked for", () => {
    expect(sortRows(rows, undefined, 0).map((r) => r.id)).toEqual(["none", "nan", "high", "low"]);
  });
});
