import { describe, expect, it } from "vitest";
import type { LoggedModel, ModelVersion, TrackedRun } from "@/api/tracking";
import { changeText, compared, figure, sideOf, valueText } from "./compare";

const version = (tags: Record<string, string> = {}): ModelVersion => ({
  name: "chat",
  version: "1",
  creation_timestamp: 0,
  last_updated_timestamp: 0,
  user_id: "kim",
  current_stage: "None",
  source: "",
  status: "READY",
  aliases: [],
  tags: Object.entries(tags).map(([key, value]) => ({ key, value })),
});
const run = (metrics: Record<string, number | "NaN">, params: Record<string, string> = {}) =>
  ({
    data: {
      metrics: Object.entries(metrics).map(([key, value]) => ({
        key,
        value,
        timestamp: 0,
        step: 0,
      })),
      params: Object.entries(params).map(([key, value]) => ({ key, value })),
      tags: [],
    },
  }) as unknown as TrackedRun;

describe("two versions", () => {
  const before = sideOf(
    version({ "mlflow.x": "1" }),
    run({ loss: 0.5, acc: 0.9, nan: "NaN" }, { lr: "0.1" }),
  );
  const after = sideOf(
    version({ note: "good" }),
    run({ loss: 0.25, nan: "NaN" }, { lr: "0.1", layers: "12" }),
  );
  const rows = compared(before, after);
  const row = (id: string) => rows.find((r) => r.id === id);

  it("stand beside each other, metrics first, by their keys", () => {
    expect(rows.map((r) => r.id)).toEqual([
      "metric acc",
      "metric loss",
      "metric nan",
      "param layers",
      "param lr",
      "tag note",
    ]);
  });

  it("differ where a value changed or only one has it", () => {
    expect(rows.filter((r) => r.differs).map((r) => r.key)).toEqual([
      "acc",
      "loss",
      "layers",
      "note",
    ]);
    expect(row("metric loss")).toMatchObject({ before: 0.5, after: 0.25, change: -0.25 });
    expect(row("metric acc")).toMatchObject({ after: undefined, change: undefined });
  });

  it("take the metrics of the logged model over those of the run", () => {
    const logged = {
      data: { metrics: [{ key: "loss", value: 0.1 }], params: [{ key: "depth", value: "3" }] },
    } as unknown as LoggedModel;
    const side = sideOf(version(), run({ loss: 0.5 }), logged);
    expect([side.metric.get("loss"), side.param.get("depth")]).toEqual([0.1, "3"]);
  });
});

describe("a figure", () => {
  it("has six digits that count", () => {
    expect(figure(0.123456789)).toBe("0.123457");
    expect(figure(1234567)).toBe("1,234,570");
    expect(figure(-0.5)).toBe("−0.5");
    expect(figure(0.00001234)).toBe("1.234e−5");
    expect(figure(0)).toBe("0");
    expect(figure(Number.NaN)).toBe("NaN");
    expect(figure(Number.NEGATIVE_INFINITY)).toBe("−Infinity");
  });

  it("is money where it is what a run has cost", () => {
    expect(valueText("berth.cost", 12.5)).toBe("$12.50");
    expect(valueText("loss", 12.5)).toBe("12.5");
    expect(valueText("lr", "0.10")).toBe("0.10");
  });

  it("says how much it changed, and by which share", () => {
    const text = (before: number, after: number, key = "loss") =>
      changeText(
        compared(
          sideOf(version(), run({ [key]: before })),
          sideOf(version(), run({ [key]: after })),
        )[0] as never,
      );
    expect(text(0.5, 0.25)).toBe("−0.25 (−50\u00a0%)");
    expect(text(2, 2.03)).toBe("+0.03 (+1.5\u00a0%)");
    expect(text(0, 3)).toBe("+3");
    expect(text(10, 12.5, "berth.cost")).toBe("+$2.50 (+25\u00a0%)");
    expect(text(1, 1)).toBeUndefined();
  });
});
