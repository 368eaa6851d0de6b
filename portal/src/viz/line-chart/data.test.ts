import { describe, expect, it } from "vitest";
import { sparkPath, thin } from "../sparkline/path";
import { extent, lastValue, sample, splitForecast, usual, withGaps } from "./data";

describe("gaps", () => {
  it("stand where a step was missed", () => {
    const out = withGaps([0, 10, 50, 60], [[1, 2, 3, 4]], 10);
    expect(out.times).toEqual([0, 10, 20, 50, 60]);
    expect(out.columns).toEqual([[1, 2, null, 3, 4]]);
  });
  it("are guessed from the usual step where none is given", () => {
    expect(usual([0, 10, 20, 30, 100])).toBe(10);
    expect(withGaps([0, 10, 20, 30, 100], [[1, 1, 1, 1, 1]], undefined).times).toHaveLength(6);
    expect(withGaps([0, 1000], [[1, 1]], undefined).times).toHaveLength(2);
  });
});

describe("a forecast", () => {
  it("begins where the measured part ends", () => {
    expect(splitForecast([0, 1, 2, 3], [5, 6, 7, 8], 2)).toEqual({
      solid: [5, 6, 7, null],
      dashed: [null, null, 7, 8],
    });
    expect(splitForecast([0, 2, 4], [5, 6, 7], 3)).toEqual({
      solid: [5, 6, null],
      dashed: [null, 6, 7],
    });
  });
  it("is empty where all is measured", () => {
    expect(splitForecast([0, 1], [5, 6], 9)).toEqual({ solid: [5, 6], dashed: [null, null] });
  });
});

describe("values", () => {
  it("have an extent without what is missing", () => {
    expect(
      extent([
        [null, 3],
        [9, Number.NaN],
      ]),
    ).toEqual([3, 9]);
    expect(extent([[null], []])).toBeNull();
  });
  it("have a last one where the label stands", () => {
    expect(lastValue([1, 2, null])).toEqual({ index: 1, value: 2 });
    expect(lastValue([null])).toBeNull();
  });
  it("are sampled with both ends", () => {
    expect(sample(3, 40)).toEqual([0, 1, 2]);
    const some = sample(1000, 40);
    expect([some.length, some[0], some[39]]).toEqual([40, 0, 999]);
  });
});

describe("a sparkline", () => {
  it("breaks at gaps and shows a value that stands alone", () => {
    const { line, end } = sparkPath([1, null, 2, 3], { min: 0, max: 4, width: 20, height: 10 });
    expect(line.match(/M/g)).toHaveLength(2);
    expect(line).toContain("h0");
    expect(end).not.toBeNull();
  });
  it("is empty without values", () => {
    expect(sparkPath([], { min: 0, width: 20, height: 10 })).toEqual({
      line: "",
      area: "",
      end: null,
    });
    expect(sparkPath([null, null], { min: 0, width: 20, height: 10 }).line).toBe("");
  });
  it("keeps peaks when values are more than pixels", () => {
    const values = Array.from({ length: 1000 }, (_, i) => (i === 517 ? 100 : 1));
    expect(Math.max(...thin(values, 80).map((v) => v ?? 0))).toBe(100);
  });
  it("stays in its box whatever the values are", () => {
    const { line } = sparkPath([-5, 1e9], { min: 0, max: 100, width: 20, height: 10 });
    const heights = [...line.matchAll(/[ML][\d.]+ (-?[\d.]+)/g)].map((m) => Number(m[1]));
    for (const y of heights) expect(y >= 0 && y <= 10).toBe(true);
  });
});
