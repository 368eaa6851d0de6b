import { describe, expect, it } from "vitest";
import { crossing, spentAt } from "../burn-down/layout";
import { spanText } from "../common/scale";
import { shareParts, shareWords } from "../share-bar/layout";
import { hitStack, placeParts, stackScale } from "../stack-bar/layout";
import { type Attempt, placeSegments, rangeOf, summary } from "./layout";

const attempts: Attempt[] = [
  {
    number: 1,
    segments: [
      { state: "waiting", from: 0, to: 3_600_000 },
      { state: "running", from: 3_600_000, to: 7_200_000 },
      { state: "preempted", from: 7_200_000, to: 7_200_000, by: "job 2" },
    ],
  },
  { number: 2, segments: [{ state: "running", from: 7_200_000, to: null }] },
];
const now = 10_800_000;

describe("the state line", () => {
  it("covers all attempts up to now", () => {
    expect(rangeOf(attempts, now)).toEqual({ from: 0, to: now });
    expect(rangeOf([], 5)).toEqual({ from: 5, to: 6 });
  });
  it("gives a moment room, without growing", () => {
    const out = placeSegments(attempts, rangeOf(attempts, now), now, 300, () => 10);
    expect(out[2]?.width).toBe(10);
    const last = out[out.length - 1];
    expect((last?.x ?? 0) + (last?.width ?? 0)).toBeCloseTo(300);
    out.forEach((p, i) => {
      const before = out[i - 1];
      if (before) expect(p.x).toBeCloseTo(before.x + before.width);
    });
  });
  it("leaves out what is not in the range", () => {
    const out = placeSegments(attempts, { from: 0, to: 1_000_000 }, now, 300, () => 0);
    expect(out.map((p) => p.segment.state)).toEqual(["waiting"]);
  });
  it("is one sentence for a table", () => {
    expect(summary(attempts, now, spanText)).toBe(
      "2 attempts, waiting 1 h, running 2 h, preempted once",
    );
  });
});

describe("shares", () => {
  it("divide the quota into own, unused and lent, and add what is borrowed", () => {
    expect(shareParts({ used: 96, quota: 128, lent: 16 })).toMatchObject({
      own: 96,
      borrowed: 0,
      free: 16,
      lent: 16,
    });
    expect(shareParts({ used: 112, quota: 96 })).toMatchObject({
      own: 96,
      borrowed: 16,
      free: 0,
      lent: 0,
      scale: 112,
    });
    expect(shareParts({ used: 0, quota: 0 }).scale).toBe(1);
  });
  it("never lend more than is unused", () => {
    expect(shareParts({ used: 60, quota: 64, lent: 32 }).lent).toBe(4);
  });
  it("are said in words", () => {
    expect(shareWords({ used: 112, quota: 96, fair: 100 }, "GPUs")).toBe(
      "112 of 96 GPUs, borrows 16, fair share 100",
    );
    expect(shareWords({ used: 6, quota: 0 }, "GPUs")).toBe(
      "6 GPUs, no quota of its own, borrows 6",
    );
  });
});

describe("stacks", () => {
  it("show small parts and fill the width", () => {
    const out = placeParts(
      [
        { key: "a", label: "a", value: 1e6 },
        { key: "b", label: "b", value: 1 },
        { key: "c", label: "c", value: 0 },
      ],
      0,
      100,
      3,
    );
    expect(out.map((p) => [p.part.key, Math.round(p.width)])).toEqual([
      ["a", 97],
      ["b", 3],
    ]);
  });
  it("find the part under a point", () => {
    const points = [
      { at: 0, values: [2, 3] },
      { at: 1, values: [0, 4] },
    ];
    expect(stackScale(points).top).toBeGreaterThanOrEqual(5);
    const box = { x: 0, y: 0, w: 100, h: 100 };
    expect(hitStack(points, box, 10, 10, 90)).toEqual({ column: 0, part: 0 });
    expect(hitStack(points, box, 10, 10, 60)).toEqual({ column: 0, part: 1 });
    expect(hitStack(points, box, 10, 60, 10)).toEqual({ column: 1, part: -1 });
    expect(hitStack(points, box, 10, 160, 10)).toBeNull();
  });
});

describe("a budget", () => {
  it("runs out where the line crosses it", () => {
    expect(
      crossing(
        [
          { at: 0, value: 0 },
          { at: 10, value: 100 },
        ],
        50,
      ),
    ).toBe(5);
    expect(crossing([{ at: 0, value: 0 }], 50)).toBeNull();
  });
  it("knows what was spent between two points", () => {
    const points = [
      { at: 0, spent: 0 },
      { at: 10, spent: 100 },
    ];
    expect([spentAt(points, -1), spentAt(points, 5), spentAt(points, 99)]).toEqual([null, 50, 100]);
  });
});
