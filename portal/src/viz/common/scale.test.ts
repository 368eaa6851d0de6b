import { describe, expect, it } from "vitest";
import { clip } from "./canvas";
import { contrast, parseHex, pixel, type Rgb, ramp, readable } from "./colour";
import {
  lowerBound,
  nearest,
  niceTicks,
  spanText,
  spread,
  tickText,
  timeTicks,
  toPixel,
  toValue,
  upperBound,
} from "./scale";

describe("scales", () => {
  it("turn values into pixels and back", () => {
    const scale = { from: 10, to: 30, start: 100, end: 300 };
    expect(toPixel(scale, 20)).toBe(200);
    expect(toValue(scale, 200)).toBe(20);
    expect(toPixel({ from: 1, to: 1, start: 0, end: 9 }, 1)).toBe(0);
  });
  it("have at most five round ticks that enclose the data", () => {
    for (const [from, to] of [
      [0, 1],
      [0, 97],
      [0, 3_120],
      [-40, 55],
      [0, 0.0031],
      [17, 18],
      [0, 1e12],
    ] as const) {
      const ticks = niceTicks(from, to, 5);
      expect(ticks.length).toBeLessThanOrEqual(5);
      expect(ticks.length).toBeGreaterThanOrEqual(2);
      expect(ticks[0]).toBeLessThanOrEqual(from);
      expect(ticks[ticks.length - 1]).toBeGreaterThanOrEqual(to);
    }
    expect(niceTicks(0, 100, 5)).toEqual([0, 25, 50, 75, 100]);
    expect(niceTicks(5, 5)).toEqual([5]);
  });
  it("place times on round moments and never more than asked for", () => {
    const from = new Date("2026-11-18T10:07:00").getTime();
    for (const hours of [0.2, 1, 7, 30, 24 * 9, 24 * 400]) {
      const ticks = timeTicks(from, from + hours * 3_600_000, 6);
      expect(ticks.at.length).toBeLessThanOrEqual(7);
      expect(ticks.at.length).toBeGreaterThan(0);
    }
    const hours = timeTicks(from, from + 6 * 3_600_000, 6);
    expect(hours.at.map((t) => tickText(t, hours.step))[0]).toBe("11:00");
  });
  it("say the day where one begins", () => {
    expect(tickText(new Date("2026-11-18T00:00:00").getTime(), 3_600_000)).toBe("Wed 18");
  });
  it("say spans in two units at most", () => {
    expect([900, 42_000, 7 * 60_000, 192 * 60_000, 52 * 3_600_000].map(spanText)).toEqual([
      "1 s",
      "42 s",
      "7 min",
      "3 h 12 min",
      "2 d 4 h",
    ]);
  });
});

describe("searches in sorted numbers", () => {
  it("find the bounds of equal values", () => {
    expect(lowerBound([1, 2, 2, 3], 2)).toBe(1);
    expect(upperBound([1, 2, 2, 3], 2)).toBe(3);
    expect(lowerBound([], 2)).toBe(0);
  });
  it("find the nearest", () => {
    expect([0, 14, 16, 99].map((v) => nearest([10, 20, 30], v))).toEqual([0, 0, 1, 2]);
  });
});

describe("labels", () => {
  it("keep their distance and stay inside", () => {
    expect(spread([10, 11, 50], 14, 0, 100)).toEqual([10, 24, 50]);
    expect(spread([98, 99, 100], 14, 0, 100)).toEqual([72, 86, 100]);
  });
  it("are left to the legend where there is no room", () => {
    expect(spread([1, 2, 3], 14, 0, 20)).toBeNull();
  });
  it("are cut with an ellipsis, or left out", () => {
    const wide = (text: string) => text.length * 10;
    expect(clip("llama-70b", 90, wide)).toBe("llama-70b");
    expect(clip("llama-70b", 60, wide)).toBe("llama…");
    expect(clip("llama-70b", 20, wide)).toBe("");
    expect(clip("llama", -4, wide)).toBe("");
  });
});

describe("colours", () => {
  it("are read from hex", () => {
    expect(parseHex("#ff8000")).toEqual([255, 128, 0]);
    expect(parseHex("#f80")).toEqual([255, 136, 0]);
    expect(parseHex("red")).toBeNull();
  });
  it("are moved just far enough to be read", () => {
    const white: Rgb = [255, 255, 255];
    const black: Rgb = [10, 12, 16];
    for (const colour of [
      [255, 255, 0],
      [20, 20, 60],
      [128, 128, 128],
      [0, 255, 255],
    ] as Rgb[]) {
      expect(contrast(readable(colour, white), white)).toBeGreaterThanOrEqual(4.49);
      expect(contrast(readable(colour, black), black)).toBeGreaterThanOrEqual(4.49);
    }
    expect(readable([0, 0, 0], white)).toEqual([0, 0, 0]);
  });
  it("make opaque pixels whose bytes are red, green, blue", () => {
    const bytes = new Uint8Array(new Uint32Array([pixel([1, 2, 3])]).buffer);
    expect([...bytes]).toEqual([1, 2, 3, 255]);
  });
  it("make a ramp from the first stop to the last", () => {
    const out = ramp(
      [
        [0, 0, 0],
        [100, 0, 0],
        [200, 0, 0],
      ],
      5,
    );
    expect([...out]).toEqual([0, 50, 100, 150, 200].map((r) => pixel([r, 0, 0])));
  });
});
