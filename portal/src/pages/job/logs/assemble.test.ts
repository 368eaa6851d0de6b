import { expect, test } from "vitest";
import type { LogChunk } from "@/api/types";
import { Assembler } from "./assemble";

const chunk = (text: string, more: Partial<LogChunk> = {}): LogChunk =>
  ({
    attempt: 0,
    task: 0,
    rank: 0,
    stream: "output",
    position: 0,
    text,
    dropped: 0,
    end: false,
    ...more,
  }) as LogChunk;

test("halves of a line are put together, for each process on its own", () => {
  const a = new Assembler();
  expect(a.take([chunk("one\ntw")]).map((l) => l.text)).toEqual(["one"]);
  expect(a.take([chunk("x", { rank: 1 }), chunk("o\r\nthree")]).map((l) => l.text)).toEqual([
    "two",
  ]);
  expect(a.take([chunk("!"), chunk("\n", { rank: 1 })]).map((l) => l.text)).toEqual(["x"]);
  expect(a.flush().map((l) => l.text)).toEqual(["three!"]);
  expect([...a.ranks]).toEqual([0, 1]);
});

test("a line keeps the time at which it began", () => {
  const a = new Assembler();
  a.take([chunk("be", { at: "2026-01-01T00:00:01Z" })]);
  const [line] = a.take([chunk("gun\n", { at: "2026-01-01T00:00:09Z" })]);
  expect(line?.at).toBe(Date.parse("2026-01-01T00:00:01Z"));
});

test("it knows where to go on, in bytes", () => {
  const a = new Assembler();
  a.take([chunk("hé\n", { position: 100 })]);
  expect(a.next).toBe(104);
  a.take([chunk("", { position: 110, end: true, dropped: 6 })]);
  expect(a.next).toBe(110);
  expect(a.ended).toBe(true);
});
