import { describe, expect, it } from "vitest";
import { height, MOST_TEXTS, parallelAxis, readRanges, within, writeRanges } from "./model";

const loss = parallelAxis({ key: "metrics.loss", label: "loss", values: [0.1, 0.4, undefined] });
const opt = parallelAxis({ key: "params.opt", label: "opt", values: ["sgd", "adam", "adam"] });

describe("an axis", () => {
  it("ends at its least and greatest number", () => {
    expect([height(loss, 0.1), height(loss, 0.4)]).toEqual([0, 1]);
    expect(loss.at[2]).toBeNaN();
  });
  it("is logarithmic where values lie decades apart", () => {
    const lr = parallelAxis({ key: "lr", label: "lr", values: [1e-5, 1e-3, 1e-1] });
    expect(lr.axis.log).toBe(true);
    expect(height(lr, 1e-3)).toBeCloseTo(0.5);
  });
  it("has a position for each text, and one for all texts beyond the limit", () => {
    expect(opt.texts).toEqual(["adam", "sgd"]);
    expect([...opt.at]).toEqual([1, 0, 0]);
    const many = Array.from({ length: 100 }, (_, i) => `v${i}`);
    const crowded = parallelAxis({ key: "k", label: "k", values: many });
    expect(crowded.texts).toHaveLength(MOST_TEXTS);
    expect(crowded.at[99]).toBe(MOST_TEXTS - 1);
  });
  it("with one text centres it", () => {
    const one = parallelAxis({ key: "k", label: "k", values: ["same", "same"] });
    expect(height(one, 0)).toBe(0.5);
  });
});

describe("ranges", () => {
  it("keep the lines that are within all of them", () => {
    expect([...within([loss, opt], {}, 3)]).toEqual([1, 1, 1]);
    expect([...within([loss, opt], { "metrics.loss": [0, 0.2] }, 3)]).toEqual([1, 0, 0]);
    const both = { "metrics.loss": [0, 1], "params.opt": [-0.25, 0.25] } as const;
    expect([...within([loss, opt], both, 3)]).toEqual([0, 1, 0]);
  });
  it("of hidden axes have no effect", () => {
    expect([...within([opt], { "metrics.loss": [9, 10] }, 3)]).toEqual([1, 1, 1]);
  });
  it("survive the address, with odd keys", () => {
    const ranges = { "metrics.val/loss:x": [0.1, 0.3], "params.a b": [-1e-7, 2e6] } as const;
    expect(readRanges(writeRanges(ranges))).toEqual(ranges);
    expect(writeRanges({})).toBeUndefined();
  });
  it("are dropped if invalid, and sorted if reversed", () => {
    expect(readRanges(["a~b~c", "a~1", "~1~2", "a~3~1"])).toEqual({ a: [1, 3] });
  });
});
