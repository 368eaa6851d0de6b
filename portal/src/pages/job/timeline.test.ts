import { expect, test } from "vitest";
import type { Timeline } from "@/api/types";
import { drawnOf, happenings, jobIn } from "./timeline";

const T = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const ms = (minute: number) => Date.UTC(2026, 0, 1, 0, minute);
const timeline = (more: Pick<Timeline, "state" | "segments">): Timeline => ({
  job: "1",
  cost_micros: 0,
  waited_ms: 0,
  ran_ms: 0,
  notes: [],
  ...more,
});

test("a wait stands with the attempt after it, and says who caused it", () => {
  const line = drawnOf(
    timeline({
      state: "pending",
      segments: [
        { state: "waiting", attempt: null, from: T(0), to: T(1), cost_micros: 0 },
        { state: "running", attempt: 0, from: T(1), to: T(5), cost_micros: 1e6 },
        { state: "saving", attempt: 0, from: T(5), to: T(6), cause: "preempt", cost_micros: 0 },
        {
          state: "preempted",
          attempt: null,
          from: T(6),
          to: null,
          cause: "preempt",
          text: "made room for a job of a higher class",
          by: { job: "13", name: "goes-first" },
          cost_micros: 0,
        },
      ],
    }),
  );
  expect(line.map((a) => a.segments.map((s) => s.state))).toEqual([
    ["waiting", "running", "saving"],
    ["preempted"],
  ]);
  expect(line[0]?.segments[1]?.cost).toBe("$1.00");
  expect(line[1]?.segments[0]).toMatchObject({ by: "13 goes-first", to: null });
  expect(happenings(line)[0]).toMatchObject({ at: ms(6), state: "preempted", by: "13 goes-first" });
});

test("the end stands with the attempt that it ends", () => {
  const line = drawnOf(
    timeline({
      state: "failed",
      segments: [
        { state: "running", attempt: 0, from: T(1), to: T(5), cost_micros: 0 },
        { state: "ended", attempt: null, from: T(5), to: T(5), text: "code 1", cost_micros: 0 },
      ],
    }),
  );
  expect(line).toHaveLength(1);
  expect(line[0]?.segments[1]).toMatchObject({
    state: "ended",
    outcome: "failed",
    cause: "code 1",
  });
});

test("one that never started waits and ends", () => {
  const line = drawnOf(
    timeline({
      state: "cancelled",
      segments: [
        { state: "waiting", attempt: null, from: T(0), to: T(3), cost_micros: 0 },
        { state: "ended", attempt: null, from: T(3), to: T(3), cost_micros: 0 },
      ],
    }),
  );
  expect(line.map((a) => a.segments.map((s) => s.state))).toEqual([["waiting", "ended"]]);
  expect(line[0]?.segments[1]?.outcome).toBe("stopped");
});

test("a job that caused something is found in what the server says", () => {
  expect(jobIn("13 goes-first")).toBe("13");
  expect(jobIn("job 17_3")).toBe("17_3");
  expect(jobIn("kim")).toBeUndefined();
  expect(jobIn("13th")).toBeUndefined();
});
