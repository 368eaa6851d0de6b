import { describe, expect, it } from "vitest";
import { cellAt, HEAD, hitMap, layoutMap, moveOn, nodesIn } from "./layout";
import { stepOf, words } from "./paint";
import {
  FLAG_DOWN,
  FLAG_IDLE,
  marksOf,
  type Raster,
  rasterize,
  rasterOf,
  rowHeight,
  runs,
} from "./raster";

const nodes = Array.from({ length: 12 }, (_, i) => ({
  rack: `r${Math.floor(i / 4)}`,
  gpus: { length: i === 5 ? 4 : 8 },
}));
const layout = layoutMap(nodes, 700, 20, 80);

describe("the map", () => {
  it("puts racks beside each other while they fit", () => {
    expect(layout.racks.map((r) => [r.x, r.y])).toEqual([
      [0, 0],
      [268, 0],
      [0, HEAD + 80 + 16],
    ]);
    expect(layoutMap(nodes, 100, 20, 80).racks.every((r) => r.x === 0)).toBe(true);
    expect(layoutMap([], 700, 20, 80).height).toBe(0);
  });
  it("finds every cell where it was put", () => {
    nodes.forEach((node, n) => {
      for (let gpu = 0; gpu < node.gpus.length; gpu++) {
        const at = cellAt(layout, { node: n, gpu });
        expect(hitMap(layout, nodes, at.x + 9, at.y + 9)).toEqual({ node: n, gpu });
      }
    });
  });
  it("finds names, and nothing between racks", () => {
    expect(hitMap(layout, nodes, 5, HEAD + 5)).toEqual({ node: 0, gpu: -1 });
    expect(hitMap(layout, nodes, 250, HEAD + 5)).toBeNull();
    expect(hitMap(layout, nodes, 268 + 80 + 5 * 20, HEAD + 25)).toBeNull();
  });
  it("selects the nodes whose rows a rectangle touches", () => {
    expect(nodesIn(layout, { x: 300, y: HEAD + 45 }, { x: 10, y: HEAD + 25 })).toEqual([
      1, 2, 5, 6,
    ]);
  });
  it("puts GPUs of a large node on lines that fit, and finds each of them there", () => {
    const large = [64, 8, 64].map((length) => ({ rack: "", gpus: { length } }));
    const map = layoutMap(large, 700, 20, 80);
    expect(map.racks[0]?.width).toBeLessThanOrEqual(700);
    large.forEach((node, n) => {
      for (let gpu = 0; gpu < node.gpus.length; gpu++) {
        const at = cellAt(map, { node: n, gpu });
        expect(at.x + map.cell).toBeLessThanOrEqual(700);
        expect(at.y + map.cell).toBeLessThanOrEqual(map.height);
        expect(hitMap(map, large, at.x + 9, at.y + 9)).toEqual({ node: n, gpu });
      }
    });
    const go = (node: number, gpu: number, dx: number, dy: number) =>
      moveOn(map, large, { node, gpu }, dx, dy);
    expect(go(0, 3, 0, 1)).toEqual({ node: 0, gpu: 27 });
    expect(go(0, 51, 0, 1)).toEqual({ node: 1, gpu: 3 });
    expect(go(2, 3, 0, -1)).toEqual({ node: 1, gpu: 3 });
    expect(go(1, 3, 0, -1)).toEqual({ node: 0, gpu: 51 });
  });
  it("lets arrows leave a rack at its edges", () => {
    const go = (node: number, gpu: number, dx: number, dy: number) =>
      moveOn(layout, nodes, { node, gpu }, dx, dy);
    expect(go(0, 3, 1, 0)).toEqual({ node: 0, gpu: 4 });
    expect(go(0, 7, 1, 0)).toEqual({ node: 4, gpu: 0 });
    expect(go(4, 0, -1, 0)).toEqual({ node: 0, gpu: 7 });
    expect(go(3, 2, 0, 1)).toEqual({ node: 8, gpu: 2 });
    expect(go(4, 7, 0, 1)).toEqual({ node: 5, gpu: 3 });
    expect(go(0, 0, 0, -1)).toEqual({ node: 0, gpu: 0 });
  });
});

describe("figures", () => {
  it("have a step for every value, however far out", () => {
    expect([-1, 0, 0.5, 1, 9].map((v) => stepOf(v, 0, 1, 10))).toEqual([0, 0, 5, 9, 9]);
    expect(stepOf(3, 3, 3, 10)).toBe(0);
  });
  it("are said in words", () => {
    const figure = {
      kind: "scale" as const,
      label: "use",
      min: 0,
      max: 1,
      format: (v: number) => `${v * 100} %`,
    };
    expect(words({ index: 0, state: "idle", value: 0 }, figure)).toBe("0 %, held, but idle");
    expect(words({ index: 0, state: "held", value: null }, figure)).toBe("no data");
    expect(words({ index: 0, state: "failed", value: 1 }, figure)).toBe("failed");
    expect(
      words(
        { index: 0, state: "held", value: null, category: 1 },
        { kind: "category", label: "team", names: ["a", "b"] },
      ),
    ).toBe("b");
  });
});

describe("the raster", () => {
  const raster: Raster = {
    rows: 2,
    columns: 3,
    values: Float32Array.from([0, 0.5, Number.NaN, 1, 2, -1]),
    flags: Uint8Array.from([FLAG_IDLE, FLAG_IDLE, 0, 0, FLAG_DOWN, FLAG_DOWN]),
  };
  it("looks values up, and leaves clear what has no data", () => {
    const out = new Uint32Array(6);
    rasterize({ ...raster, flags: undefined }, Uint32Array.from([10, 20, 30, 40]), 0, 1, 99, out);
    expect([...out]).toEqual([10, 30, 0, 40, 40, 10]);
    rasterize(raster, Uint32Array.from([10, 20, 30, 40]), 0, 1, 99, out);
    expect([...out]).toEqual([10, 30, 0, 40, 99, 99]);
  });
  it("joins neighbours with a flag", () => {
    expect(runs(raster, FLAG_IDLE, 0, 2)).toEqual([{ row: 0, from: 0, to: 2 }]);
    expect(runs(raster, FLAG_DOWN, 0, 2)).toEqual([{ row: 1, from: 1, to: 3 }]);
    expect(runs(raster, FLAG_DOWN, 0, 1)).toEqual([]);
  });
  it("is made of what the API gives", () => {
    const made = rasterOf([{ values: [1, null, 3, 4] }, { values: [] }], 3);
    expect([...made.values]).toEqual([1, Number.NaN, 3, Number.NaN, Number.NaN, Number.NaN]);
  });
  it("says which marks need explaining", () => {
    expect(marksOf(raster)).toEqual(["idle", "failed", "unknown"]);
    expect(marksOf(rasterOf([{ values: [1] }], 1))).toEqual([]);
  });
  it("has rows between 2 and 18 pixels", () => {
    expect([1, 40, 100_000].map((n) => rowHeight(n, 400))).toEqual([18, 10, 2]);
  });
});
