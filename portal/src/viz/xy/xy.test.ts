import { describe, expect, it } from "vitest";
import { axisOf, extentOf, nearestPoint, place, ticksOf, valueAt } from "./axis";
import { smooth } from "./smooth";

describe("smoothing", () => {
  it("changes nothing at 0 and keeps an even line even", () => {
    expect(smooth([1, 5, 3], 0)).toEqual([1, 5, 3]);
    for (const value of smooth([2, 2, 2, 2], 0.9)) expect(value).toBeCloseTo(2);
  });
  it("does not begin at zero", () => {
    expect(smooth([10, 10.5], 0.99)[0]).toBeCloseTo(10);
  });
  it("brings values nearer together, and goes on after a gap", () => {
    const out = smooth([0, 10, 0, Number.NaN, 10], 0.5);
    expect(out[1]).toBeLessThan(10);
    expect(out[3]).toBeNaN();
    expect(out[4]).toBeGreaterThan(0);
  });
});

describe("an axis", () => {
  it("converts values to positions and back", () => {
    for (const axis of [axisOf([0, 8], false), axisOf([1e-5, 1e-1], true)])
      for (const value of [axis.from, axis.to])
        expect(valueAt(axis, place(axis, value, 300, 20), 300, 20)).toBeCloseTo(value, 8);
  });
  it("has no position for zero and negative values if it is logarithmic", () => {
    const axis = axisOf([0.001, 10], true);
    expect(place(axis, 0, 0, 100)).toBeNaN();
    expect(place(axis, -1, 0, 100)).toBeNaN();
    expect(extentOf([[-1, 0, 2, 5]], true)).toEqual([2, 5]);
  });
  it("has a range if all values are equal", () => {
    expect(axisOf([3, 3], false)).toMatchObject({ from: expect.any(Number) });
    const { from, to } = axisOf([3, 3], false);
    expect(from < 3 && to > 3).toBe(true);
    const log = axisOf([3, 3], true);
    expect(log.from < 3 && log.to > 3).toBe(true);
  });
  it("ignores missing and infinite values", () => {
    expect(extentOf([[Number.NaN, 1, Number.POSITIVE_INFINITY, 4]])).toEqual([1, 4]);
    // The server stores the largest numbers instead of infinities.
    expect(extentOf([[1, 1.7976931348623157e308]])).toEqual([1, 1]);
    expect(extentOf([[Number.NaN]])).toBeUndefined();
  });
  it("has round ticks: powers of ten over several decades", () => {
    expect(ticksOf({ from: 0, to: 100, log: false }, 5)).toEqual([0, 25, 50, 75, 100]);
    expect(ticksOf({ from: 0.001, to: 100, log: true }, 6)).toHaveLength(6);
    const narrow = ticksOf({ from: 0.4, to: 0.9, log: true }, 5);
    expect(narrow.length).toBeGreaterThanOrEqual(2);
    expect(narrow.every((v) => v >= 0.4 && v <= 0.9)).toBe(true);
  });
});

describe("the nearest point", () => {
  const lines = [
    { x: [0, 10, 20], y: [0, 0, 0] },
    { x: [0, 10, 20], y: [50, 50, Number.NaN] },
  ];
  const same = (v: number) => v;
  it("is that of the line under the pointer", () => {
    expect(nearestPoint(lines, { x: 11, y: 48 }, same, same, 11)).toEqual({ line: 1, point: 1 });
    expect(nearestPoint(lines, { x: 19, y: 3 }, same, same, 19)).toEqual({ line: 0, point: 2 });
  });
  it("is undefined if no point is near", () => {
    expect(nearestPoint(lines, { x: 10, y: 500 }, same, same, 10)).toBeUndefined();
  });
});
