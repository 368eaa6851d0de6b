// Loads the runs of an experiment page by page, and refreshes open runs.

import {
  infiniteQueryOptions,
  keepPreviousData,
  queryOptions,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { isOpen, type MetricPoint, type RunPage, tracking } from "@/api/tracking";
import { samplesFor } from "./model/curves";
import { and } from "./model/filter";
import { type Row, rowOf } from "./model/row";

/** The maximum number of loaded runs. Beyond it, a filter finds runs faster than scrolling does. */
export const MOST_RUNS = 20_000;
/** The first page is short, so that rows appear soon. */
const FIRST = 200;
const PAGE = 1000;
const FRESH_MS = 10_000;
/** The maximum number of open runs to refresh. */
const MOST_OPEN = 200;

export interface RunsAsked {
  experiment: string;
  team: string | undefined;
  filter: string;
  deleted: boolean;
  order: string[] | undefined;
}

async function page(asked: RunsAsked, most: number, token: string, signal?: AbortSignal) {
  const fields = {
    experiment_ids: [asked.experiment],
    filter: asked.filter,
    order_by: asked.order ?? ["start_time DESC"],
    run_view_type: asked.deleted ? "DELETED_ONLY" : "ACTIVE_ONLY",
    max_results: most,
    page_token: token,
  };
  const found = await tracking<RunPage>("POST", "runs/search", {
    fields,
    team: asked.team,
    ...(signal && { signal }),
  });
  return { rows: (found.runs ?? []).map(rowOf), next: found.next_page_token || undefined };
}

type Page = Awaited<ReturnType<typeof page>>;

export function runsQuery(asked: RunsAsked) {
  return infiniteQueryOptions({
    queryKey: ["runs", "search", asked],
    queryFn: ({ pageParam, signal }) =>
      page(asked, pageParam === "" ? FIRST : PAGE, pageParam, signal),
    initialPageParam: "",
    getNextPageParam: (last: Page, pages: Page[]) =>
      pages.reduce((n, p) => n + p.rows.length, 0) >= MOST_RUNS ? undefined : last.next,
    placeholderData: keepPreviousData,
    // `fresh` brings changes. The pages are loaded again only when the user asks for it.
    staleTime: 5 * 60_000,
    // Comparing ten thousand runs field by field takes longer than drawing them.
    structuralSharing: false,
  });
}

const NONE: readonly Row[] = [];

interface Fresh {
  /** Each run with the time of its reading. A list that was read later replaces it. */
  rows: ReadonlyMap<string, { row: Row; at: number }>;
  added: number;
}

export interface Runs {
  /** Undefined until the first page is loaded. */
  rows: readonly Row[] | undefined;
  loading: boolean;
  /** The experiment has more runs than the limit. */
  capped: boolean;
  stale: boolean;
  error: unknown;
  retry: () => void;
  /** The number of runs that began since the last load. `show` loads them. */
  added: number;
  show: () => void;
}

/** Loads one page after the other, and refreshes open runs. */
export function useRuns(asked: RunsAsked): Runs {
  const client = useQueryClient();
  const list = useInfiniteQuery(runsQuery(asked));
  const { hasNextPage, isFetching, isPlaceholderData, error, fetchNextPage } = list;
  useEffect(() => {
    if (hasNextPage && !isFetching && !isPlaceholderData && !error) {
      // Do not cancel a request for the same page.
      void fetchNextPage({ cancelRefetch: false });
    }
  }, [hasNextPage, isFetching, isPlaceholderData, error, fetchNextPage]);

  const loaded = useMemo(() => list.data?.pages.flatMap((p) => p.rows), [list.data]);
  const listed = list.dataUpdatedAt;
  const key = ["runs", "fresh", asked] as const;
  const latest = useRef<readonly Row[]>(NONE);
  const fresh = useQuery({
    queryKey: key,
    queryFn: async ({ signal }): Promise<Fresh> => {
      const known = client.getQueryData<Fresh>(key)?.rows ?? NO_FRESH.rows;
      const open = latest.current
        .filter((row) => isOpen(row.status) && !row.deleted)
        .slice(0, MOST_OPEN)
        .map((row) => row.id);
      const at = Date.now();
      const ids = `run_id IN (${open.map((id) => `'${id}'`).join(", ")})`;
      const again =
        open.length > 0 ? await page({ ...asked, filter: ids }, PAGE, "", signal) : undefined;
      const newest = Math.max(0, ...latest.current.slice(0, 1000).map((row) => row.start ?? 0));
      const since = and(asked.filter, `start_time > ${newest}`);
      const added = await page({ ...asked, filter: since, order: undefined }, PAGE, "", signal);
      const there = new Set(latest.current.map((row) => row.id));
      return {
        rows: new Map([
          ...known,
          ...(again?.rows ?? []).map((row) => [row.id, { row, at }] as const),
        ]),
        added: added.rows.filter((row) => !there.has(row.id)).length,
      };
    },
    enabled: loaded !== undefined && !hasNextPage && !isPlaceholderData && !error && !asked.deleted,
    refetchInterval: FRESH_MS,
    structuralSharing: false,
    // The list was just loaded, so the first refresh can wait.
    initialData: NO_FRESH,
    staleTime: FRESH_MS,
    retry: false,
  });

  const rows = useMemo(() => {
    const changed = fresh.data.rows;
    if (!loaded || changed.size === 0) return loaded;
    return loaded.map((row) => {
      const later = changed.get(row.id);
      return later && later.at > listed ? later.row : row;
    });
  }, [loaded, listed, fresh.data]);
  latest.current = rows ?? NONE;

  const count = loaded?.length ?? 0;
  return {
    rows,
    loading: list.isFetching && !isPlaceholderData,
    capped: count >= MOST_RUNS && list.data?.pages.at(-1)?.next !== undefined,
    stale: isPlaceholderData,
    error,
    retry: () => void list.refetch(),
    added: fresh.data.added,
    show: () => {
      client.setQueryData(key, NO_FRESH);
      void client.invalidateQueries({ queryKey: ["runs", "search", asked] });
    },
  };
}

const NO_FRESH: Fresh = { rows: new Map(), added: 0 };

/** The history of one metric of many runs. The server samples it evenly. */
export function historyQuery(metric: string, runs: readonly string[], live: boolean) {
  return queryOptions({
    queryKey: ["runs", "history", metric, runs],
    queryFn: async ({ signal }): Promise<MetricPoint[]> => {
      if (runs.length === 0) return [];
      const fields = { run_ids: runs, metric_key: metric, max_results: samplesFor(runs.length) };
      return (
        (
          await tracking<{ metrics?: MetricPoint[] }>("GET", "metrics/get-history-bulk-interval", {
            fields,
            signal,
          })
        ).metrics ?? []
      );
    },
    placeholderData: keepPreviousData,
    refetchInterval: live ? 15_000 : false,
    structuralSharing: false,
  });
}

/** The rows of these ids, in their order. */
export function useChosen(rows: readonly Row[] | undefined, ids: readonly string[] | undefined) {
  return useMemo(() => {
    const of = new Map((rows ?? []).map((row) => [row.id, row]));
    return (ids ?? []).flatMap((id) => of.get(id) ?? []);
  }, [rows, ids]);
}

/** The value once it has not changed for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => set(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return settled;
}
