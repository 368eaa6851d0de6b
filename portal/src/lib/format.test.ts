import { describe, expect, test } from "vitest";
import { csv } from "./csv";
import { bytes, clock, count, gpus, money, ordinal, percent, relative, span } from "./format";
import { list, num, oneOf, parseSearch, str, stringifySearch } from "./search";

const plain = (s: string) => s.replaceAll("\u00a0", " ");
const table = (f: (n: number) => string, cases: [number, string][]) =>
  test.each(cases)("%d is %s", (n, text) => expect(plain(f(n))).toBe(text));

describe("money is grouped and has its cents", () => {
  table(money, [
    [1_240_500_000, "$1,240.50"],
    [0, "$0.00"],
    [-4_200_000, "−$4.20"],
    [2_300, "$0.0023"],
    [1, "$0.0001"],
    [123_456_700_000, "$123,457"],
  ]);
  table(
    (n) => money(n, { short: true }),
    [
      [9_912_340_000, "$9,912.34"],
      [5_000_000_000, "$5k"],
      [0, "$0"],
      [31_420_000_000, "$31.4k"],
      [2_000_000_000_000, "$2M"],
    ],
  );
});

describe("GPUs are counted in thousandths", () => {
  table(gpus, [
    [8000, "8"],
    [500, "0.5"],
    [125, "0.125"],
    [0, "0"],
    [1_024_000, "1,024"],
    [10_000, "10"],
  ]);
});

describe("spans have at most two units", () => {
  table(span, [
    [0, "0 s"],
    [250, "250 ms"],
    [8_000, "8 s"],
    [95_000, "1 m 35 s"],
    [840_000, "14 m"],
    [7_500_000, "2 h 5 m"],
    [273_600_000, "3 d 4 h"],
  ]);
});

describe("bytes go by thousands", () => {
  table(bytes, [
    [0, "0 B"],
    [999, "999 B"],
    [1_500, "1.5 KB"],
    [220_000_000_000, "220 GB"],
    [2_000_000_000_000, "2 TB"],
  ]);
});

test("times near now are relative, and say their direction", () => {
  const now = Date.parse("2026-11-18T12:00:00Z");
  const at = (iso: string) => plain(relative(iso, now));
  expect(at("2026-11-18T12:00:03Z")).toBe("now");
  expect(at("2026-11-18T12:12:30Z")).toBe("in 12 m");
  expect(at("2026-11-18T08:50:00Z")).toBe("3 h 10 m ago");
  expect(at("2026-11-11T08:50:00Z")).toBe("7 d ago");
  expect(relative(null)).toBe("–");
});

test("a clock names the day only when it is another one", () => {
  const now = new Date(2026, 10, 18, 12, 0).getTime();
  expect(clock(new Date(2026, 10, 18, 16, 40), now)).toBe("16:40");
  expect(clock(new Date(2026, 10, 20, 4, 10), now)).toBe("Fri 04:10");
  expect(clock(new Date(2026, 8, 2, 4, 10), now)).toBe("2 Sep 04:10");
  expect(clock(new Date(2025, 8, 2, 4, 10), now)).toBe("2 Sep 2025");
});

test("counts, percent and places", () => {
  expect(count(50_000)).toBe("50,000");
  expect(plain(percent(87.4))).toBe("87 %");
  expect([1, 2, 3, 4, 11, 12, 13, 21, 102].map(ordinal).join(" ")).toBe(
    "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd",
  );
});

test("a cell of CSV is quoted where needed and never a formula", () => {
  expect(csv([["a", 'say "x"', "=1+1", 5, null]])).toBe(`a,"say ""x""",'=1+1,5,`);
});

test("search parameters are read as text and written back the same", () => {
  const text = "?state=pending,running&sort=-cost&q=a%20b";
  const raw = parseSearch(text);
  expect(list(raw, "state")).toEqual(["pending", "running"]);
  expect(str(raw, "q")).toBe("a b");
  expect(num({ n: "x" }, "n")).toBeUndefined();
  expect(oneOf(raw, "sort", ["-cost"])).toBe("-cost");
  expect(stringifySearch({ state: ["pending", "running"], sort: "-cost", none: undefined })).toBe(
    "?state=pending,running&sort=-cost",
  );
});
