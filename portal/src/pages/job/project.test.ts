import { expect, test } from "vitest";
import type { Attempt, Job, Plan } from "@/api/types";
import { project } from "./project";

const NOW = Date.parse("2026-11-19T12:00:00Z");
const H = 3_600_000;
const at = (hours: number) => new Date(NOW + hours * H).toISOString();
const job = (more: Partial<Job>): Job =>
  ({ id: "1", state: "running", cost_micros: 0, attempts: 1, ...more }) as Job;
const plan = (more: Partial<Plan>) => ({ ...more }) as Plan;
const attempt = (started: number, closed: number | null): Attempt =>
  ({
    number: 0,
    opened: at(started),
    started: at(started),
    closed: closed === null ? null : at(closed),
    leases: [],
    cost_micros: 0,
  }) as Attempt;

test("a running job ends at its estimate and costs what that takes", () => {
  const p = project(job({ started: at(-1), cost_micros: 10e6, price_micros_per_hour: 10e6 }), NOW, {
    plan: plan({ estimate_ms: 3 * H }),
    file: "time: 6h\nrun: x\n",
  });
  expect(p.endsAt).toBe(NOW + 2 * H);
  expect(p.projected).toBe(30e6);
  expect(p.limitAt).toBe(NOW + 5 * H);
  expect(p.most).toBe(60e6);
  expect(p.basis).toBe("estimate");
});

test("one that takes longer than expected ends at its limit", () => {
  const p = project(job({ started: at(-4), price_micros_per_hour: 1e6, cost_micros: 4e6 }), NOW, {
    plan: plan({ estimate_ms: 3 * H }),
    file: "time: 6h\n",
  });
  expect(p.endsAt).toBe(NOW + 2 * H);
  expect(p.basis).toBe("limit");
  expect(p.projected).toBe(6e6);
});

test("what was saved before counts, where a job saves", () => {
  const known = {
    plan: plan({ estimate_ms: 3 * H }),
    attempts: [attempt(-4, -2), attempt(-0.5, null)],
  };
  const j = job({ started: at(-4), price_micros_per_hour: 1e6 });
  expect(project(j, NOW, { ...known, file: "checkpoint: {}\n" }).endsAt).toBe(NOW + 0.5 * H);
  expect(project(j, NOW, { ...known, file: "run: x\n" }).endsAt).toBe(NOW + 2.5 * H);
});

test("a waiting job has its whole run before it, an ended one nothing", () => {
  const p = project(job({ state: "pending", cost_micros: 5e6, started: null }), NOW, {
    plan: plan({ estimate_ms: 2 * H, price_micros_per_hour: 10e6 }),
    file: "time: 4h\n",
  });
  expect(p.endsAt).toBeUndefined();
  expect(p.projected).toBe(25e6);
  expect(p.most).toBe(45e6);
  expect(project(job({ state: "done" }), NOW, {}).projected).toBeUndefined();
});

test("the server's own figure goes before ours, and nothing is made up", () => {
  const own = { projected_micros: 7e6 } as Partial<Job>;
  expect(project(job({ started: at(-1), ...own }), NOW, {}).projected).toBe(7e6);
  const none = project(job({ started: at(-1) }), NOW, {});
  expect(none.projected).toBeUndefined();
  expect(none.endsAt).toBeUndefined();
});
