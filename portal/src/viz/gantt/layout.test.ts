import { describe, expect, it } from "vitest";
import { bars as made } from "../bench/data";
import {
  barsIn,
  firstBar,
  type GanttBar,
  hitGantt,
  layoutGantt,
  nextBar,
  panView,
  ROW_PAD,
  rowsIn,
  zoomView,
} from "./layout";

const rows = ["a", "b", "c"].map((id) => ({ id, label: id }));
const bar = (
  id: string,
  row: string,
  from: number,
  to: number | null,
  kind: GanttBar["kind"] = "past",
): GanttBar => ({
  id,
  row,
  from,
  to,
  kind,
  label: id,
  tone: 0,
});
const bars = [
  bar("1", "a", 0, 10),
  bar("2", "a", 10, 20),
  bar("3", "a", 5, 15),
  bar("4", "c", 30, null, "running"),
  bar("5", "nowhere", 0, 99),
];
const layout = layoutGantt(rows, bars, 50, 20);

describe("the layout", () => {
  it("gives overlapping bars lanes of their own", () => {
    expect(layout.rows.map((r) => r.lanes.map((l) => [...l.bars]))).toEqual([
      [[0, 1], [2]],
      [],
      [[3]],
    ]);
    expect(layout.rows.map((r) => r.height)).toEqual([40 + ROW_PAD, 20 + ROW_PAD, 20 + ROW_PAD]);
  });
  it("knows the whole of time", () => {
    expect([layout.from, layout.to]).toEqual([0, 50]);
    expect(layoutGantt([], [], 7, 20)).toMatchObject({ from: 7, to: 7, height: 0 });
  });
  it("finds the rows in sight", () => {
    expect(rowsIn(layout, 0, 10)).toEqual([0, 1]);
    expect(rowsIn(layout, 45, 500)).toEqual([1, 3]);
  });
  it("finds the bars in sight", () => {
    const lane = layout.rows[0]?.lanes[0];
    expect(lane && barsIn(lane, 12, 99)).toEqual([1, 2]);
    expect(lane && barsIn(lane, 21, 99)).toEqual([2, 2]);
  });
});

describe("hits", () => {
  const at = (time: number, y: number, slack = 0) => hitGantt(layout, time, y, slack)?.bar ?? null;
  it("find the bar of a lane", () => {
    expect([at(5, 5), at(12, 5), at(12, 25), at(40, 80)]).toEqual([0, 1, 2, 3]);
  });
  it("find nothing beside bars", () => {
    expect([at(25, 5), at(5, 50), at(5, -1), at(5, 5000)]).toEqual([null, null, null, null]);
  });
  it("forgive a few pixels", () => {
    expect([at(21, 5), at(21, 5, 2), at(28, 80, 2)]).toEqual([null, 1, 3]);
  });
  it("agree with a look at every bar", () => {
    const big = made(40, 2000, 1_000_000_000);
    const all = layoutGantt(big.rows, big.bars, 1_000_000_000, 20);
    for (let i = 0; i < 500; i++) {
      const row = (i * 7) % 40;
      const time = all.from + ((all.to - all.from) * ((i * 37) % 500)) / 500;
      const place = all.rows[row];
      const hit = hitGantt(all, time, (place?.top ?? 0) + 10, 0);
      const lane = place?.lanes[0];
      const found = lane
        ? [...lane.bars].filter((_, p) => time >= (lane.from[p] ?? 0) && time <= (lane.to[p] ?? 0))
        : [];
      expect(found.length === 0 ? hit : found.includes(hit?.bar ?? -1)).toBe(
        found.length === 0 ? null : true,
      );
    }
  });
});

describe("the cursor", () => {
  it("starts in sight and follows the arrows", () => {
    const first = firstBar(layout, 0, 50, 0);
    expect(first?.bar).toBe(0);
    if (!first) return;
    const right = nextBar(layout, first, 1, 0);
    expect(right?.bar).toBe(1);
    expect(nextBar(layout, first, -1, 0)).toBeNull();
    const down = nextBar(layout, first, 0, 1);
    expect(down?.bar).toBe(2);
    expect(down && nextBar(layout, down, 0, 1)?.bar).toBe(3);
    expect(nextBar(layout, first, 0, -1)).toBeNull();
  });
});

describe("the view", () => {
  const limits = { from: 0, to: 10_000_000 };
  it("keeps what is under the pointer when zooming", () => {
    const out = zoomView({ from: 1_000_000, to: 3_000_000 }, 1_500_000, 0.5, limits);
    expect(out).toEqual({ from: 1_250_000, to: 2_250_000 });
  });
  it("never gets shorter than a minute or leaves the data", () => {
    const near = zoomView({ from: 0, to: 100_000 }, 50_000, 1e-9, limits);
    expect(near.to - near.from).toBe(60_000);
    const away = panView({ from: 0, to: 1_000_000 }, 1e12, limits);
    expect(away.from).toBeLessThan(limits.to);
    expect(panView({ from: 0, to: 1_000_000 }, -1e12, limits).to).toBeGreaterThan(limits.from);
  });
});
