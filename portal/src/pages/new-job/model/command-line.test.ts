import { expect, test } from "vitest";
import { commandLine, oneLine } from "./command-line";
import { readDoc } from "./doc";

const line = (text: string) => oneLine(commandLine(readDoc(text)));
const unsaid = (text: string) => commandLine(readDoc(text)).unsaid.map((u) => u.key);

test("every key is a flag, and the command comes last", () => {
  expect(
    line("name: bert\ngpus: H100:8\nnodes: 2\ntime: 3d\nrun: python train.py --lr 1e-4\n"),
  ).toBe("berth run -n bert -g H100:8 -N 2 --time 3d -- python train.py --lr 1e-4");
});

test("what a shell would take apart is quoted", () => {
  expect(line("comment: it's $5\nenv: {A: 'x y', B: $HOME}\n")).toBe(
    "berth run --comment 'it'\\''s $5' -e 'A=x y' -e 'B=$HOME'",
  );
  expect(line("budget: $4000\n")).toBe("berth run --budget '$4000'");
});

test("lists are given one by one, or as YAML where a value is more than a text", () => {
  expect(line("gpus: [H100:8, A100:8]\ntags: [a, b]\n")).toBe(
    "berth run -g H100:8 -g A100:8 --tag a --tag b",
  );
  expect(line("checkpoint: {path: ckpt, every: 30m}\n")).toBe(
    "berth run --checkpoint '{path: ckpt, every: 30m}'",
  );
  expect(line("after: {any: [a, 17]}\n")).toBe("berth run --after '{any: [a, 17]}'");
});

test("secrets, sweeps and switches have forms of their own", () => {
  expect(line("secrets: [HF_TOKEN]\nhold: true\n")).toBe("berth run --secret HF_TOKEN --hold");
  expect(line("secrets: {A: A, B: team-b}\n")).toBe("berth run --secret A --secret B=team-b");
  expect(line("sweep: {lr: [1e-4, 3e-4], seed: 1}\n")).toBe(
    "berth run --sweep lr=1e-4,3e-4 --sweep seed=1",
  );
});

test("a script for the shell goes through one, and a list does not", () => {
  expect(line("run: echo $HOME && ls\n")).toBe("berth run -- bash -c 'echo $HOME && ls'");
  expect(line("run: [python, train.py, --lr, $lr]\n")).toBe(
    "berth run -- python train.py --lr '$lr'",
  );
  expect(line("run: cd /data\n")).toBe("berth run -- bash -c 'cd /data'");
});

test("what flags cannot say is named, and then the file is the way", () => {
  expect(unsaid("run: |\n  a\n  b\n")).toEqual(["run"]);
  expect(unsaid("sweep: {zip: {a: [1], b: [2]}}\nfoo: 1\n")).toEqual(["sweep", "foo"]);
  expect(unsaid("sweep: {a: ['1,2']}\n")).toEqual(["sweep"]);
  expect(unsaid("comment: '[x]'\n")).toEqual(["comment"]);
  expect(line("run: |\n  a\n  b\n")).toBe("berth run -f job.yaml");
});
