import { expect, test } from "vitest";
import { placeOf, readDoc, type Value, valueAt, withValue } from "./doc";

function check(before: string, path: string, value: Value | undefined, after: string) {
  expect(withValue(before, path.split("."), value)).toBe(after);
}

test("a value changes and comments, unknown keys and the order of things stay", () => {
  check(
    "# my study\nname: a # short\nfoo: 1\n\n# the machines\ngpus: H100:8 # all of them\nrun: |\n  a\n  b\n",
    "gpus",
    "H100:4",
    "# my study\nname: a # short\nfoo: 1\n\n# the machines\ngpus: H100:4 # all of them\nrun: |\n  a\n  b\n",
  );
});

test("numbers and words are written without quotes, and text that needs them has them", () => {
  check("run: a\n", "gpus", "0.50", "gpus: 0.50\nrun: a\n");
  check("run: a\n", "hold", "true", "hold: true\nrun: a\n");
  check("run: a\n", "comment", "a: b # c", 'comment: "a: b # c"\nrun: a\n');
  check("gpus: 1\n", "run", "echo '{a}' > x", "gpus: 1\nrun: echo '{a}' > x\n");
});

test("a new key stands where a job file has it", () => {
  check("name: a\nrun: b\n", "time", "2h", "name: a\ntime: 2h\nrun: b\n");
  check("# about\nrun: b\n", "name", "x", "# about\nname: x\nrun: b\n");
  check("name: a\nmystery: 1\n", "run", "b", "name: a\nmystery: 1\nrun: b\n");
  check("", "name", "a", "name: a\n");
});

test("a script of several lines is a block", () => {
  check("run: a\n", "run", "a\nb\n", "run: |\n  a\n  b\n");
  check("run: |\n  a\n  b\n", "run", "c", "run: c\n");
});

test("parts of a block are set one by one, and the last one takes the block with it", () => {
  check("run: a\n", "checkpoint.path", "ckpt", "checkpoint: {path: ckpt}\nrun: a\n");
  check(
    "checkpoint: {path: ckpt}\n",
    "checkpoint.every",
    "30m",
    "checkpoint: {path: ckpt, every: 30m}\n",
  );
  check("checkpoint: {path: ckpt}\nrun: a\n", "checkpoint.path", undefined, "run: a\n");
});

test("maps of the environment have a line for each entry and keep their comments", () => {
  check("run: a\n", "env", { A: "1" }, "env:\n  A: 1\nrun: a\n");
  check(
    "env:\n  A: 1 # first\n  B: 2\n",
    "env",
    { A: "1", C: "3" },
    "env:\n  A: 1 # first\n  C: 3\n",
  );
  check("env: {A: 1}\n", "env", { A: "2" }, "env: {A: 2}\n");
});

test("the last key leaves its comments", () => {
  check("# about\nname: a\n", "name", undefined, "# about\n");
  check("name: a\n", "name", undefined, "");
});

test("a text that is no YAML is left alone and says where it is wrong", () => {
  const text = "gpus: [\nrun: a\n";
  expect(withValue(text, ["name"], "x")).toBe(text);
  const [first] = readDoc(text).mistakes;
  expect(first?.line).toBeGreaterThan(0);
  expect(first?.message).toMatch(/^This is not YAML/);
  expect(readDoc("just words\n").mistakes[0]?.message).toContain("list of keys");
  expect(readDoc("a: 1\na: 2\n").mistakes).toHaveLength(1);
});

test("scalars are text as Berth reads them", () => {
  const job = readDoc("gpus: 0.50\nhold: true\nname:\nsecrets: [A, B]\nenv: {X: 1e-4}\n");
  expect(valueAt(job, "gpus")).toBe("0.50");
  expect(valueAt(job, "hold")).toBe("true");
  expect(valueAt(job, "name")).toBeUndefined();
  expect(valueAt(job, "secrets")).toEqual(["A", "B"]);
  expect(valueAt(job, "env", "X")).toBe("1e-4");
});

test("a mistake that names a key finds its line", () => {
  const job = readDoc("name: a\ncheckpoint:\n  path: x\n  every: zz\nafter: [a, b]\n");
  expect(placeOf(job, "checkpoint.every")).toEqual({ line: 4, column: 3 });
  expect(placeOf(job, "after[1]")).toEqual({ line: 5, column: 12 });
  expect(placeOf(job, "run")).toBeUndefined();
});
