import { useEffect, useMemo, useState } from "react";
import { lines } from "@/api/client";
import { ApiError, asApiError } from "@/api/error";
import { LogStore } from "@/viz/log-view/store";
import { Assembler } from "./assemble";

export interface LogQuery {
  job: string;
  attempt: number | undefined;
  /** A log is of one process: the first where these are left out. */
  task: number | undefined;
  rank: number | undefined;
  /** From the first line, and not only the last ones. */
  whole: boolean;
  follow: boolean;
}

export type LogPhase = "loading" | "live" | "ended" | "retrying";

/** As many lines as one sees at once when a page opens; the rest is loaded when asked for. */
export const TAIL = 5000;
const RETRY_MS = 2000;
/** While the first lines come in, the page is drawn after this many and not after each chunk. */
const FLUSH_LINES = 20_000;

/** The lines of a job's log in a store, and more as they come. */
export function useLog(query: LogQuery) {
  const { job, attempt, task, rank, whole, follow } = query;
  const store = useMemo(() => new LogStore(), [job, attempt, task, rank, whole]);
  const [phase, setPhase] = useState<LogPhase>("loading");
  const [error, setError] = useState<ApiError>();
  const [round, setRound] = useState(0);

  useEffect(() => {
    const stop = new AbortController();
    const made = new Assembler();
    store.clear();
    setPhase("loading");
    setError(undefined);
    const run = async () => {
      for (let first = true; !stop.signal.aborted; first = false) {
        try {
          const from = first ? (whole ? 0 : undefined) : made.next;
          const tail = first && !whole ? TAIL : undefined;
          const stream = lines(
            "/v1/jobs/{job}/logs",
            { path: { job }, query: { attempt, task, rank, from, tail, follow } },
            stop.signal,
          );
          setPhase(follow ? "live" : "loading");
          for await (const batch of stream) {
            const problem = batch.find((c) => c.problem)?.problem;
            for (const part of slices(made.take(batch), FLUSH_LINES)) store.append(part);
            if (problem) throw new ApiError(problem);
            setError(undefined);
          }
          store.append(made.flush());
          setPhase("ended");
          return;
        } catch (e) {
          if (stop.signal.aborted) return;
          const known = asApiError(e);
          setError(known);
          if (known.status >= 400 && known.status < 500) {
            setPhase("ended");
            return;
          }
          setPhase("retrying");
          await new Promise((done) => setTimeout(done, RETRY_MS));
        }
      }
    };
    void run();
    return () => stop.abort();
  }, [store, follow, round]);

  return { store, phase, error, retry: () => setRound((n) => n + 1) };
}

function* slices<T>(all: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < all.length; i += size) yield all.slice(i, i + size);
}

/** The whole log as one text, for a file. `tell` hears how many lines there are so far. */
export async function wholeLog(
  query: Pick<LogQuery, "job" | "attempt" | "task" | "rank">,
  tell: (lines: number) => void,
  signal: AbortSignal,
): Promise<Blob> {
  const made = new Assembler();
  const parts: string[] = [];
  let n = 0;
  const { job, attempt, task, rank } = query;
  const add = (some: readonly { text: string }[]) => {
    if (some.length === 0) return;
    parts.push(`${some.map((l) => l.text).join("\n")}\n`);
    n += some.length;
    tell(n);
  };
  for await (const batch of lines(
    "/v1/jobs/{job}/logs",
    { path: { job }, query: { attempt, task, rank, from: 0 } },
    signal,
  ))
    add(made.take(batch));
  add(made.flush());
  return new Blob(parts, { type: "text/plain;charset=utf-8" });
}
