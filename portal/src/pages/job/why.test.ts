import { expect, test } from "vitest";
import type { Why } from "@/api/types";
import { deedOf, fewerGpus, linesOf, promisedAt, sentence, whyModel } from "./why";

const why = (more: Partial<Why>): Why =>
  ({
    id: "7",
    name: "llama",
    state: "pending",
    since_ms: 1000,
    queue: "nlp",
    waiting: 3,
    needs: "4",
    blockers: [],
    also: [],
    sooner: [],
    ...more,
  }) as Why;

test("the binding blocker comes first, the others say what clears them", () => {
  const model = whyModel(
    why({
      blockers: [
        { code: "reserved", text: "4 GPUs are reserved for it", binding: false },
        { code: "no-fit", text: "it asks for 4 GPUs; none that suits it is free", binding: true },
        { code: "brand-new", text: "something else", binding: false },
      ],
      eta: { age_ms: 0, p50: "2026-11-19T00:10:00Z", p90: null },
    }),
    0,
  );
  expect(model.main?.code).toBe("no-fit");
  expect(model.main?.sentence).toBe("It asks for 4 GPUs; none that suits it is free.");
  expect(model.others.map((r) => r.code)).toEqual(["reserved", "brand-new"]);
  expect(model.others[0]?.clears).toBeTruthy();
  expect(model.others[1]?.clears).toBeUndefined();
  expect(model.p50).toBe(Date.parse("2026-11-19T00:10:00Z"));
  expect(model.p90).toBeUndefined();
  expect(whyModel(why({ eta: { age_ms: 1 } }), 0).beyond).toBe(true);
  expect(whyModel(why({}), 0).beyond).toBe(false);
});

test("times in a reason are told by the reader's clock", () => {
  const now = Date.parse("2026-11-19T00:00:00Z");
  const text = sentence("held until 2026-11-19T01:41:46.446Z, or sooner", now);
  expect(text).not.toContain("2026");
  expect(text).toMatch(/^Held until .*\d\d:\d\d, or sooner\.$/);
  expect(sentence("", now)).toBe("");
});

test("the request that the server says is taken by its word", () => {
  const [set, release, clone] = whyModel(
    why({
      sooner: [
        {
          change: "with priority high",
          stops: 1,
          set: { priority: "high", time: null },
          total_micros: 7,
        },
        { change: "released from its hold", stops: 0, set: { hold: false } },
        { change: "on A100 GPUs", stops: 0, clone: { file: "gpus: A100:4\nafter: null\n" } },
      ],
    }),
    0,
  ).choices;
  expect(set?.deed).toEqual({ kind: "set", change: { priority: "high" } });
  expect(set?.total).toBe(7);
  expect(release?.deed).toEqual({ kind: "resume" });
  expect(clone?.deed).toMatchObject({
    kind: "replace",
    keys: { gpus: "A100:4", after: undefined },
  });
});

test("without a request the words are read, and what is unknown stays advice", () => {
  expect(deedOf("with 0.5 of a GPU instead of a whole one")).toEqual({
    kind: "replace",
    keys: { gpus: "0.5" },
  });
  expect(deedOf("without having to lie in one rack")).toEqual({
    kind: "replace",
    keys: { place: "any" },
  });
  expect(deedOf("with a limit of 4 gpu instead of 2 for queue nlp").kind).toBe("advice");
});

test("fewer GPUs are offered only where that many are free", () => {
  const some = why({
    blockers: [
      {
        code: "no-fit",
        text: "it asks for 2 GPUs; 1 that would suit is free",
        binding: true,
      },
    ],
  });
  expect(fewerGpus(some, "2")).toEqual({ gpus: "1", n: 1 });
  expect(fewerGpus(some, "H100:2")).toEqual({ gpus: "H100:1", n: 1 });
  expect(fewerGpus(some, "[H100:2, A100:2]")).toBeUndefined();
  expect(fewerGpus(some, "0.5")).toBeUndefined();
  expect(fewerGpus(why({}), "2")).toBeUndefined();
});

test("a change is told key by key, old and new", () => {
  const old = (key: string) => ({ time: "6h" })[key];
  expect(linesOf({ kind: "set", change: { priority: "high", time: "1h" } }, old)).toEqual([
    { key: "priority", from: "normal", to: "high" },
    { key: "time", from: "6h", to: "1h" },
  ]);
  expect(linesOf({ kind: "replace", keys: { after: undefined } }, old)).toEqual([
    { key: "after", from: "not set", to: "not set" },
  ]);
  expect(linesOf({ kind: "resume" }, old)).toEqual([{ key: "hold", from: "true", to: "false" }]);
});

test("a reservation says the latest start", () => {
  const reserved = why({
    blockers: [
      {
        code: "reserved",
        text: "4 GPUs are reserved for it from 2026-11-19T01:41:46.446Z, or sooner if it fits sooner",
        binding: false,
      },
    ],
  });
  expect(promisedAt(reserved)).toBe(Date.parse("2026-11-19T01:41:46.446Z"));
  expect(promisedAt(why({}))).toBeUndefined();
});
