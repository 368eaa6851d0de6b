import { expect, it } from "vitest";
import { diff } from "./diff";
import type { Row } from "./row";

const base: Row = {
  id: "a",
  name: "a",
  user: "kim",
  status: "FINISHED",
  deleted: false,
  start: 1,
  end: 2,
  params: { lr: "0.1", seed: "1" },
  metrics: { loss: 0.5, nan: Number.NaN },
  tags: { "mlflow.runName": "a", note: "x" },
};

it("says which params, metrics and tags differ, and what only one run has", () => {
  const other: Row = {
    ...base,
    id: "b",
    name: "b",
    params: { lr: "0.2", seed: "1", warmup: "10" },
    tags: { "mlflow.runName": "b" },
  };
  const lines = diff([base, other]);
  const differing = lines.filter((l) => l.differs);
  expect(differing.map((l) => [l.key, l.values])).toEqual([
    ["params.lr", ["0.1", "0.2"]],
    ["params.warmup", [undefined, "10"]],
    ["tags.note", ["x", undefined]],
  ]);
  // NaN is NaN in both, and the names stand in the head.
  expect(lines.some((l) => l.key === "metrics.nan" && !l.differs)).toBe(true);
  expect(lines.some((l) => l.name === "mlflow.runName")).toBe(false);
});

it("finds nothing between a run and itself", () => {
  expect(diff([base, base]).filter((l) => l.differs)).toEqual([]);
});
