import { expect, test } from "vitest";
import type { Job, StopPreview } from "@/api/types";
import { lossOf, lossOfAll } from "./loss";

const NOW = Date.parse("2026-01-01T01:00:00Z");
const job = (more: Partial<Job>): Job =>
  ({
    id: "1",
    state: "running",
    gpus_milli: 4000,
    cost_micros: 0,
    started: "2026-01-01T00:00:00Z",
    price_micros_per_hour: 10e6,
    ...more,
  }) as Job;

const saved = (lost_ms: number, lost_micros: number, more: Partial<StopPreview> = {}) => ({
  job: "1",
  gpus_milli: 4000,
  nodes: ["n1"],
  lost_ms,
  lost_micros,
  last_checkpoint: "2026-01-01T00:30:00Z",
  may_save: false,
  restarts: false,
  runs_on: false,
  cost_micros: 0,
  starts: [],
  ...more,
});

test("the server says it exactly, and who starts then as far as one may know", () => {
  const lines = lossOf(
    job({}),
    "stop",
    NOW,
    saved(660_000, 4_200_000, {
      starts: [
        { job: "7", name: "vit", user: "kim", team: "vision" },
        { job: "8", name: null, user: null, team: "nlp" },
      ],
    }),
  );
  expect(lines[0]?.what).toMatch(/11.m since the last checkpoint/);
  expect(lines[0]?.amount).toBe("$4.20");
  expect(lines.at(-1)?.what).toBe("Then start: 7 vit, 8 of nlp");
});

test("one that has never saved loses all", () => {
  const [first] = lossOf(job({}), "stop", NOW, saved(660_000, 1, { last_checkpoint: null }));
  expect(first?.what).toMatch(/^All it computed, 11.m: it has no checkpoint/);
});

test("without a preview the most that can be lost is told as such", () => {
  const [first] = lossOf(job({}), "stop", NOW);
  expect(first?.what).toMatch(/at most the work of 1.h/);
  expect(first?.amount).toBe("$10.00");
});

test("a waiting job loses its place, an ended one nothing", () => {
  expect(lossOf(job({ state: "pending" }), "stop", NOW)[0]?.what).toBe("Its place in line");
  expect(lossOf(job({ state: "done" }), "stop", NOW)).toEqual([]);
});

test("many at once are summed up", () => {
  const lines = lossOfAll(
    [
      job({ id: "1" }),
      job({ id: "2" }),
      job({ id: "3", state: "pending" }),
      job({ id: "4", state: "done" }),
    ],
    "stop",
    NOW,
    new Map([["1", saved(60_000, 1_000_000)]]),
  );
  expect(lines[0]?.what).toContain("2 running jobs");
  expect(lines[0]?.amount).toBe("≤ $11.00");
  expect(lines[1]?.amount).toBe("8");
  expect(lines[2]?.what).toContain("1 waiting job");
});
