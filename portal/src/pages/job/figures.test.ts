import { expect, test } from "vitest";
import type { JobFigures } from "@/api/types";
import { aligned, charts, MOST_LINES, overall } from "./figures";

const line = (figure: string, values: (number | null)[]) => ({
  figure,
  unit: "",
  values,
  largest: [],
});
const gpu = (n: number, values: (number | null)[]) => ({
  node: "n1",
  gpu: n,
  milli: 1000,
  times_ms: [10_000, 15_000 + n],
  figures: [line("utilization", values)],
  summary: { idle_ms: 0, idle_at_end_ms: 0 },
});
const data = (gpus: ReturnType<typeof gpu>[]): JobFigures =>
  ({
    job: "1",
    from: "",
    to: "",
    step_ms: 5000,
    tasks: [
      {
        task: 0,
        attempt: 0,
        node: "n1",
        from: "",
        times_ms: [10_000],
        figures: [line("cpu", [1500]), line("read", [null])],
        gpus,
      },
    ],
    summary: { idle_ms: 0, idle_at_end_ms: 0 },
    advice: [],
    notes: [],
  }) as unknown as JobFigures;

test("a chart for each figure that there is, in units that people read", () => {
  const all = charts(data([gpu(0, [910, null]), gpu(1, [0, 500])]));
  expect(all.map((c) => c.id)).toEqual(["utilization", "cpu"]);
  expect(all[0]?.series.map((s) => s.values)).toEqual([
    [91, null],
    [0, 50],
  ]);
  expect(all[0]?.times).toEqual([10_000, 15_000]);
  expect(all[1]?.unit(1.5)).toContain("1.5");
});

test("many GPUs become mean, least and most", () => {
  const many = Array.from({ length: MOST_LINES + 1 }, (_, i) => gpu(i, [i * 100, null]));
  const [chart] = charts(data(many));
  expect(chart?.series.map((s) => s.key)).toEqual(["mean", "least", "most"]);
  expect(chart?.series.map((s) => s.values[0])).toEqual([40, 0, 80]);
});

test("points of different sets meet on one grid", () => {
  const { times, rows } = aligned(
    [
      { times: [1000, 6001], values: [1, 2] },
      { times: [1400, 11_000], values: [3, 4] },
    ],
    5000,
  );
  expect(times).toEqual([0, 5000, 10_000]);
  expect(rows).toEqual([
    [1, 2, null],
    [3, null, 4],
  ]);
});

test("all GPUs of a job together are a mean between the least and the most", () => {
  const found = overall(data([gpu(0, [100, 900]), gpu(1, [300, 500])]), "utilization");
  expect(found).toMatchObject({ mean: [20, 70], least: [10, 50], most: [30, 90] });
  expect(found?.last).toBe("70\u00a0%");
  expect(overall(data([gpu(0, [100, 900])]), "power")).toBeUndefined();
});
