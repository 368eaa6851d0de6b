import { describe, expect, it } from "vitest";
import { random } from "../bench/data";
import { open, phaseWords, resize, told } from "../terminal/protocol";
import { diffLines, diffRows, within } from "./diff";
import { position } from "./position";

const show = (a: string, b: string) =>
  diffLines(a, b).map((l) => `${l.kind === "same" ? " " : l.kind === "gone" ? "-" : "+"}${l.text}`);

describe("the comparison", () => {
  it("keeps what both have", () => {
    expect(show("a\nb\nc\n", "a\nx\nc\n")).toEqual([" a", "-b", "+x", " c"]);
    expect(show("", "a\n")).toEqual(["+a"]);
    expect(show("a", "")).toEqual(["-a"]);
    expect(show("a\n", "a")).toEqual([" a"]);
    expect(show("a\nb\nc\nd", "b\nc\ne\nd")).toEqual(["-a", " b", " c", "+e", " d"]);
  });
  it("turns one text into the other, whatever they are", () => {
    for (let seed = 0; seed < 200; seed++) {
      const next = random(seed);
      const text = () =>
        Array.from({ length: Math.floor(next() * 12) }, () => "abc"[Math.floor(next() * 3)]).join(
          "\n",
        );
      const [a, b] = [text(), text()];
      const lines = diffLines(a, b);
      const left = lines.filter((l) => l.kind !== "new");
      const right = lines.filter((l) => l.kind !== "gone");
      expect(left.map((l) => l.text).join("\n")).toBe(a);
      expect(right.map((l) => l.text).join("\n")).toBe(b);
      expect(left.map((l) => l.left)).toEqual(left.map((_, i) => i + 1));
      expect(right.map((l) => l.right)).toEqual(right.map((_, i) => i + 1));
    }
  });
  it("has a bound for texts that share nothing", () => {
    const a = Array.from({ length: 3000 }, (_, i) => `a${i}`).join("\n");
    const b = Array.from({ length: 3000 }, (_, i) => `b${i}`).join("\n");
    expect(diffLines(a, b)).toHaveLength(6000);
  });
  it("folds what is far from changes", () => {
    const a = Array.from({ length: 20 }, (_, i) => `l${i}`);
    const b = [...a];
    b[10] = "new";
    const rows = diffRows(diffLines(a.join("\n"), b.join("\n")), 2);
    expect(rows.map((r) => (r.kind === "fold" ? r.count : "·"))).toEqual([
      8,
      "·",
      "·",
      "·",
      "·",
      "·",
      7,
    ]);
  });
  it("finds what differs within a line", () => {
    expect(within("nodes: 4", "nodes: 16")).toEqual({ start: 7, endA: 8, endB: 9 });
    expect(within("aa", "aaa")).toEqual({ start: 2, endA: 2, endB: 3 });
  });
});

describe("diagnostics", () => {
  const doc = ["name: x", "  gpus: H100:8 ", ""];
  const from = [0, 8, 24];
  const at = (line: number, column: number) =>
    position((n) => ({ from: from[n - 1] ?? 0, text: doc[n - 1] ?? "" }), 3, line, column);
  it("mark the word they stand at", () => {
    expect(at(2, 3)).toEqual({ from: 10, to: 14 });
  });
  it("mark something even where nothing is, and never leave the text", () => {
    expect(at(2, 7)).toEqual({ from: 14, to: 15 });
    expect(at(99, 99)).toEqual({ from: 24, to: 24 });
    expect(at(0, 0)).toEqual({ from: 0, to: 4 });
    expect(at(2, 99)).toEqual({ from: 10, to: 22 });
  });
});

describe("the shell", () => {
  it("asks as the server expects", () => {
    expect(JSON.parse(open({ command: [], rows: 24, columns: 80 }))).toEqual({
      kind: "open",
      command: [],
      term: "xterm-256color",
      rows: 24,
      columns: 80,
    });
    expect(resize(24, 80)).toBe('{"kind":"resize","rows":24,"columns":80}');
  });
  it("understands what the server tells, and nothing else", () => {
    expect(told('{"kind":"exit","code":130}')).toEqual({ kind: "exit", code: 130 });
    expect(
      told(
        '{"kind":"problem","problem":{"title":"T","detail":"D","code":"BRT-1","next":"N","status":409}}',
      ),
    ).toEqual({
      kind: "problem",
      problem: { title: "T", detail: "D", code: "BRT-1", next: "N" },
    });
    for (const bad of [
      "",
      "{",
      "null",
      '"exit"',
      '{"kind":"exit"}',
      '{"kind":"other"}',
      '{"kind":"problem"}',
    ]) {
      expect(told(bad)).toBeNull();
    }
  });
  it("says how it ended", () => {
    expect(phaseWords({ kind: "ended", code: 130 })).toBe("The shell was ended by signal 2.");
    expect(phaseWords({ kind: "ended", code: 1 })).toBe("The shell ended with code 1.");
    expect(
      phaseWords({
        kind: "refused",
        problem: { title: "", detail: "It is done.", code: "BRT-1", next: "Clone it." },
      }),
    ).toBe("It is done (BRT-1). Clone it.");
  });
});
