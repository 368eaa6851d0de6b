import { describe, expect, it } from "vitest";
import type { MetricPoint } from "@/api/tracking";
import { axisTitle, costOf, curvesOf, samplesFor } from "./curves";
import type { Row } from "./row";

const row = (id: string, metrics: Row["metrics"] = {}, end: number | undefined = 11_000): Row => ({
  id,
  name: id,
  user: "kim",
  status: "FINISHED",
  deleted: false,
  start: 1000,
  end,
  params: {},
  metrics,
  tags: {},
});
const point = (run_id: string, step: number, timestamp: number, value: MetricPoint["value"]) => ({
  key: "loss",
  run_id,
  step,
  timestamp,
  value,
});
const NO_COSTS = new Map();

describe("a curve", () => {
  const points = [point("a", 2, 3000, 0.5), point("a", 1, 2000, 1), point("b", 1, 4000, "NaN")];
  it("has its points in the order of the axis, and NaN among them", () => {
    const [a, b] = curvesOf([row("a"), row("b")], points, "step", NO_COSTS);
    expect(a).toMatchObject({ run: "a", x: [1, 2], y: [1, 0.5] });
    expect(b?.y[0]).toBeNaN();
  });
  it("over time begins with its run", () => {
    expect(curvesOf([row("a")], points, "time", NO_COSTS)[0]?.x).toEqual([1000, 2000]);
  });
  it("is left out where the run has no such metric", () => {
    expect(curvesOf([row("c")], points, "step", NO_COSTS)).toEqual([]);
  });
});

describe("the cost of a run at a moment", () => {
  it("grows evenly where only the whole is known", () => {
    const cost = costOf(row("a", { "berth.cost": 10 }), [], 0);
    expect(cost.known).toBe("linear");
    expect([1000, 6000, 11_000, 99_000].map(cost.at)).toEqual([0, 5, 10, 10]);
  });
  it("of a run that goes on has been spent until now", () => {
    const open = { ...row("a", { "berth.cost": 4 }), end: undefined };
    expect(costOf(open, [], 3000).at(2000)).toBe(2);
  });
  it("follows its own history where there is one: a pause costs nothing", () => {
    const history = [
      { key: "berth.cost", step: 0, timestamp: 3000, value: 8 },
      { key: "berth.cost", step: 0, timestamp: 9000, value: 8 },
      { key: "berth.cost", step: 0, timestamp: 11_000, value: 10 },
    ];
    const cost = costOf(row("a", { "berth.cost": 10 }), history, 0);
    expect(cost.known).toBe("history");
    expect([2000, 6000, 10_000].map(cost.at)).toEqual([4, 8, 9]);
  });
  it("is unknown of runs that are no job's, and they are not drawn", () => {
    const cost = costOf(row("a"), [], 0);
    expect(cost.known).toBe("none");
    const drawn = curvesOf([row("a")], [point("a", 1, 2000, 1)], "cost", new Map([["a", cost]]));
    expect(drawn).toEqual([]);
  });
  it("says in the axis that it is an estimate", () => {
    const linear = costOf(row("a", { "berth.cost": 10 }), [], 0);
    expect(axisTitle("cost", [linear])).toContain("estimated");
    expect(axisTitle("cost", [{ ...linear, known: "history" }])).toBe("Cost");
    expect(axisTitle("step", [linear])).toBe("Step");
  });
});

it("many runs get fewer points each, and never more than the server gives", () => {
  expect([1, 20, 100, 1000].map(samplesFor)).toEqual([2500, 2500, 500, 100]);
});
