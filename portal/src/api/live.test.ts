import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

class Source {
  static made: Source[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((m: { data: string; lastEventId: string }) => void) | null = null;
  onerror: (() => void) | null = null;
  closed = false;
  constructor(readonly url: string) {
    Source.made.push(this);
  }
  close() {
    this.closed = true;
  }
  send(event: Record<string, unknown>) {
    this.onmessage?.({ data: JSON.stringify({ at: "", ...event }), lastEventId: "" });
  }
}

const listeners = new Map<string, () => void>();
let hidden = false;
let stop = () => {};
let client: QueryClient;
let live: typeof import("./live");

beforeEach(async () => {
  vi.useFakeTimers();
  vi.resetModules();
  Source.made = [];
  listeners.clear();
  hidden = false;
  const on = (name: string, cb: () => void) => listeners.set(name, cb);
  vi.stubGlobal("document", { addEventListener: on, removeEventListener: () => {} });
  vi.stubGlobal("window", { addEventListener: on, removeEventListener: () => {} });
  live = await import("./live");
  client = new QueryClient();
  stop = live.start(client, { open: (url) => new Source(url), hidden: () => hidden });
});
afterEach(() => {
  stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const last = () => Source.made.at(-1) as Source;
const job = (seq: number, id = "17", state = "running") => ({
  kind: "job",
  seq,
  id,
  name: "x",
  team: "nlp",
  state,
  text: "",
});

test("a hidden page has no stream, and goes on where it was", () => {
  last().onopen?.();
  last().send(job(41));
  hidden = true;
  listeners.get("visibilitychange")?.();
  expect(last().closed).toBe(true);
  expect(live.live.get().state).toBe("paused");
  hidden = false;
  listeners.get("visibilitychange")?.();
  expect(Source.made).toHaveLength(2);
  expect(last().url).toContain("after=41");
});

test("a gap reads everything again, and does not move the place to go on from", () => {
  const spy = vi.spyOn(client, "invalidateQueries");
  last().onopen?.();
  last().send(job(41));
  last().send({ kind: "gap", seq: 0 });
  expect(spy.mock.calls.at(-1)?.[0]).toHaveProperty("predicate");
  last().onerror?.();
  vi.advanceTimersByTime(1500);
  expect(last().url).toContain("after=41");
});

test("a broken stream is opened again, each time a little later", () => {
  for (const wait of [1000, 2000, 4000]) {
    last().onerror?.();
    const now = live.live.get();
    expect(now.state === "reconnecting" && now.at - Date.now()).toBe(wait);
    vi.advanceTimersByTime(wait);
  }
  expect(Source.made).toHaveLength(4);
});

test("a hundred thousand events are a few reads, and nothing is kept of them", () => {
  const spy = vi.spyOn(client, "invalidateQueries");
  last().onopen?.();
  spy.mockClear();
  let seen = 0;
  live.onEvents((batch) => {
    seen += batch.length;
  });
  for (let i = 1; i <= 100_000; i += 1) {
    last().send(job(i, String(i % 900)));
    if (i % 67 === 0) vi.advanceTimersByTime(400);
  }
  vi.advanceTimersByTime(1000);
  expect(seen).toBe(100_000);
  expect(live.counters.events).toBe(100_000);
  // Ten minutes: lists at most every two seconds, others more seldom.
  expect(spy.mock.calls.length).toBeLessThan(1500);
});

test("the new state shows at once in a list that is on the screen", async () => {
  const { QueryObserver } = await import("@tanstack/react-query");
  const key = ["jobs", "some", {}, 20];
  client.setQueryData(key, {
    jobs: [
      { id: "17", state: "pending" },
      { id: "18", state: "pending" },
    ],
  });
  const watch = new QueryObserver(client, {
    queryKey: key,
    staleTime: Number.POSITIVE_INFINITY,
    enabled: true,
    queryFn: () => new Promise<never>(() => {}),
  });
  const off = watch.subscribe(() => {});
  last().onopen?.();
  last().send(job(1, "17"));
  vi.advanceTimersByTime(500);
  expect(client.getQueryData(key)).toMatchObject({
    jobs: [{ state: "running" }, { state: "pending" }],
  });
  off();
});

test("an event leaves a failed read its error for a while, then tries it again", async () => {
  const { QueryObserver } = await import("@tanstack/react-query");
  let reads = 0;
  const watch = new QueryObserver(client, {
    queryKey: ["jobs", "some"],
    retry: false,
    queryFn: () => {
      reads += 1;
      return Promise.reject(new Error("busy"));
    },
  });
  const off = watch.subscribe(() => {});
  await vi.advanceTimersByTimeAsync(10);
  for (let seq = 1; seq <= 20; seq += 1) {
    last().send(job(seq));
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(reads).toBe(1);
  expect(watch.getCurrentResult().status).toBe("error");
  await vi.advanceTimersByTimeAsync(20_000);
  last().send(job(21));
  await vi.advanceTimersByTimeAsync(3000);
  expect(reads).toBe(2);
  off();
});

test("a stream that lost its right stays closed and says why", () => {
  last().send({
    kind: "end",
    seq: 0,
    problem: { detail: "The token was revoked.", code: "BRT0005" },
  });
  expect(live.live.get()).toEqual({
    state: "ended",
    detail: "The token was revoked.",
    code: "BRT0005",
  });
  vi.advanceTimersByTime(60_000);
  expect(Source.made).toHaveLength(1);
});

test("alerts are counted and only the newest are kept", () => {
  for (let i = 1; i <= 80; i += 1)
    last().send({ kind: "alert", seq: i, code: "budget", text: `${i}` });
  expect(live.alerts.get().list).toHaveLength(50);
  expect(live.alerts.get().list[0]?.text).toBe("80");
});
