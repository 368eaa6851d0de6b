import { expect, test } from "vitest";
import { processesOf } from "./processes";

const labels = (job: { nodes: number; gpus_milli: number }, file: string) =>
  processesOf(job, file).map((p) => `${p.label}=${p.task}.${p.rank}`);

test("a job that is started once on each node has a process for each", () => {
  expect(labels({ nodes: 1, gpus_milli: 8000 }, "run: x\n")).toEqual(["0=0.0"]);
  expect(labels({ nodes: 2, gpus_milli: 0 }, "launch: torchrun\n")).toEqual(["0=0.0", "1=1.0"]);
});

test("ranks are one for each GPU, or as many as the file says", () => {
  expect(labels({ nodes: 2, gpus_milli: 4000 }, "launch: ranks\n")).toEqual([
    "0=0.0",
    "1=0.1",
    "2=1.0",
    "3=1.1",
  ]);
  expect(labels({ nodes: 1, gpus_milli: 4000 }, "launch: ranks\nranks: 3\n")).toHaveLength(3);
  expect(processesOf({ nodes: 500, gpus_milli: 4_000_000 }, "launch: ranks\n")).toHaveLength(256);
});
