import type { Query, QueryClient } from "@tanstack/react-query";
import { store, useStore } from "@/lib/store";
import { link } from "./client";
import { openStream, type Source } from "./stream";
import type { Event, Job, JobList } from "./types";

/**
 * One event stream for the whole portal. Events are gathered and turned, a few times a second, into
 * the refetches that they call for; a screen that nobody looks at costs the server nothing.
 */
export type Live =
  | { state: "live" }
  | { state: "connecting" }
  | { state: "paused" }
  | { state: "reconnecting"; at: number }
  | { state: "ended"; detail: string; code?: string };

export interface Alert {
  seq: number;
  at: string;
  code: string;
  team: string | null;
  text: string;
}

/** What is listened to. Gaps and the end of a stream come unasked. */
const KINDS = ["job", "node", "queue", "alert"] as const satisfies readonly Event["kind"][];
const FLUSH_MS = 400;
/** How often at most each kind of thing is read again, however many events there are. */
const PACE: Record<string, number> = {
  job: 1000,
  jobs: 2000,
  queues: 2000,
  shares: 5000,
  gpus: 2500,
  nodes: 2000,
  leases: 10_000,
  cost: 30_000,
  budgets: 30_000,
};
/** So long an error is shown before an event makes its query try again. */
const AFTER_ERROR_MS = 30_000;
const MOST_JOBS = 500;
const MOST_ALERTS = 50;
const RETRY_MS = [1000, 2000, 4000, 8000, 15_000, 30_000];

export const live = store<Live>({ state: "connecting" });
export const alerts = store<{ list: Alert[]; unseen: number }>({ list: [], unseen: 0 });
/** How many events came, for tests and the tooltip. */
export const counters = { events: 0, gaps: 0, flushes: 0, refetches: 0 };
// Whoever measures the built portal from outside reads them here.
Object.assign(globalThis, { berthLive: counters });

/** Ends the stream that is open. */
let end = () => {};

/** At a change of user: what comes on the old stream is for the one who left, and so are the alerts. */
export function forgetLive() {
  end();
  alerts.set({ list: [], unseen: 0 });
}

type Listener = (events: readonly Event[]) => void;
const listeners = new Set<Listener>();

/** Batches of events as they come, for a page that shows them one by one. */
export function onEvents(cb: Listener): () => void {
  listeners.add(cb);
  return () => listeners.delete(cb);
}

export const useLive = () => useStore(live);
export const useAlerts = () => useStore(alerts);

export interface Options {
  open?: (url: string) => Source;
  hidden?: () => boolean;
  /** Something may be wrong with the session: look. */
  onTrouble?: () => void;
}

export function start(client: QueryClient, opts: Options = {}): () => void {
  const open = opts.open ?? openStream;
  const hidden = opts.hidden ?? (() => document.hidden);

  let source: Source | undefined;
  let last: number | undefined;
  let everOpen = false;
  let tries = 0;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let flushing: ReturnType<typeof setTimeout> | undefined;
  let over = false;

  let pending: Event[] = [];
  const jobs = new Map<string, Partial<Job>>();
  let allJobs = false;
  const nouns = new Set<string>();
  const nextAt = new Map<string, number>();
  const waiting = new Map<string, ReturnType<typeof setTimeout>>();

  function connect() {
    clearTimeout(retry);
    if (over || source || hidden()) return;
    if (live.get().state !== "reconnecting") live.set({ state: "connecting" });
    const made = open(link("/v1/events", { query: { kind: KINDS.join(","), after: last } }));
    source = made;
    made.onopen = () => {
      tries = 0;
      // Without a place to go on from, whatever happened meanwhile is unknown.
      if (everOpen && last === undefined) everything();
      // What was read before the stream was there may have changed in between.
      if (!everOpen)
        void client.invalidateQueries({
          predicate: (q) => q.state.dataUpdatedAt > 0 && PACE[String(q.queryKey[0])] !== undefined,
        });
      everOpen = true;
      live.set({ state: "live" });
    };
    made.onmessage = (m) => {
      const event = JSON.parse(m.data) as Event;
      if (event.seq > 0) last = event.seq;
      take(event);
    };
    made.onerror = () => {
      // It is opened again by nobody else, and later each time.
      drop();
      opts.onTrouble?.();
      const wait = RETRY_MS[Math.min(tries, RETRY_MS.length - 1)] as number;
      tries += 1;
      live.set({ state: "reconnecting", at: Date.now() + wait });
      retry = setTimeout(connect, wait);
    };
  }

  function drop() {
    source?.close();
    source = undefined;
  }

  function take(event: Event) {
    counters.events += 1;
    switch (event.kind) {
      case "job": {
        if (jobs.size < MOST_JOBS) jobs.set(event.id, { state: event.state, name: event.name });
        else allJobs = true;
        nouns.add("jobs").add("queues").add("gpus").add("leases").add("cost");
        break;
      }
      case "node":
        nouns.add("nodes").add("gpus").add("queues");
        break;
      case "queue":
        nouns.add("queues").add("shares");
        break;
      case "alert":
        nouns.add("budgets");
        alert(event);
        break;
      case "gap":
        counters.gaps += 1;
        everything();
        break;
      case "end":
        over = true;
        drop();
        live.set({ state: "ended", detail: event.problem.detail, code: event.problem.code });
        opts.onTrouble?.();
        return;
      case "log":
        break;
    }
    if (listeners.size > 0 && pending.length < 2000) pending.push(event);
    flushing ??= setTimeout(flush, FLUSH_MS);
  }

  function flush() {
    flushing = undefined;
    counters.flushes += 1;
    if (jobs.size > 0) patch(client, jobs);
    for (const id of jobs.keys()) if (cached(id)) refetch("job", id);
    if (allJobs) refetch("job");
    for (const noun of nouns) refetch(noun);
    jobs.clear();
    nouns.clear();
    allJobs = false;
    const batch = pending;
    pending = [];
    if (batch.length > 0) for (const cb of listeners) cb(batch);
  }

  const cached = (id: string) =>
    client.getQueryCache().find({ queryKey: ["job", id] }) !== undefined;

  /** Now, or as soon as its pace allows; then once for all that came in between. */
  function refetch(noun: string, id?: string) {
    const key = id === undefined ? noun : `${noun}:${id}`;
    if (waiting.has(key)) return;
    const now = Date.now();
    const at = Math.max(now, nextAt.get(key) ?? 0);
    const go = () => {
      waiting.delete(key);
      nextAt.set(key, Date.now() + (PACE[noun] ?? 5000));
      if (nextAt.size > 1000) nextAt.clear();
      counters.refetches += 1;
      const queryKey = id === undefined ? [noun] : [noun, id];
      void client.invalidateQueries({ queryKey, predicate: isReadAgain });
    };
    if (at <= now) go();
    else waiting.set(key, setTimeout(go, at - now));
  }

  function everything() {
    void client.invalidateQueries({ predicate: (q) => q.queryKey[0] !== "session" });
  }

  function visibility() {
    if (over) return;
    if (hidden()) {
      clearTimeout(retry);
      drop();
      live.set({ state: "paused" });
    } else {
      tries = 0;
      connect();
    }
  }

  document.addEventListener("visibilitychange", visibility);
  window.addEventListener("online", visibility);
  if (hidden()) live.set({ state: "paused" });
  else connect();

  const stop = () => {
    over = true;
    drop();
    clearTimeout(retry);
    clearTimeout(flushing);
    for (const t of waiting.values()) clearTimeout(t);
    document.removeEventListener("visibilitychange", visibility);
    window.removeEventListener("online", visibility);
  };
  end = stop;
  return stop;
}

/**
 * What was read before is read again. A first read goes on undisturbed, and one that failed shows its
 * error for a while: with an event a second it would otherwise load for ever, and press a busy server.
 */
function isReadAgain({ state }: Query): boolean {
  if (state.data !== undefined) return true;
  return state.status === "error" && Date.now() - state.errorUpdatedAt >= AFTER_ERROR_MS;
}

/** The new state at once in the lists that show the job; the rest comes with the next read. */
function patch(client: QueryClient, jobs: ReadonlyMap<string, Partial<Job>>) {
  const rows = (list: Job[]): Job[] => {
    let changed = false;
    const out = list.map((job) => {
      const now = jobs.get(job.id);
      if (!now || now.state === job.state) return job;
      changed = true;
      return { ...job, ...now };
    });
    return changed ? out : list;
  };
  const page = (p: JobList): JobList => {
    const next = rows(p.jobs);
    return next === p.jobs ? p : { ...p, jobs: next };
  };
  client.setQueriesData<{ pages: JobList[]; pageParams: unknown[] }>(
    { queryKey: ["jobs", "pages"], type: "active" },
    (old) => {
      if (!old) return old;
      const pages = old.pages.map(page);
      return pages.every((p, i) => p === old.pages[i]) ? old : { ...old, pages };
    },
  );
  client.setQueriesData<JobList>(
    { queryKey: ["jobs", "some"], type: "active" },
    (old) => old && page(old),
  );
}

function alert(event: Extract<Event, { kind: "alert" }>) {
  alerts.set(({ list, unseen }) => ({
    list: [
      {
        seq: event.seq,
        at: event.at,
        code: event.code,
        team: event.team ?? null,
        text: event.text,
      },
      ...list,
    ].slice(0, MOST_ALERTS),
    unseen: Math.min(unseen + 1, MOST_ALERTS),
  }));
}

export function alertsSeen() {
  alerts.set((a) => (a.unseen === 0 ? a : { ...a, unseen: 0 }));
}
