import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import type { QueryOf } from "@/api/types";
import type { By } from "./search";

/** What costs are asked for; what is left out does not filter. */
export type Scope = Pick<
  QueryOf<"/v1/cost">,
  "from" | "to" | "team" | "project" | "experiment" | "user" | "job"
>;

export function seriesQuery(scope: Scope, by: By) {
  const query: QueryOf<"/v1/cost/series"> = { ...scope, by, step: "day", top: 7 };
  return queryOptions({
    queryKey: ["cost", "series", query],
    queryFn: ({ signal }) => data(api.GET("/v1/cost/series", { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function linesQuery(scope: Scope) {
  return infiniteQueryOptions({
    queryKey: ["cost", "rows", scope],
    queryFn: ({ pageParam, signal }) =>
      data(
        api.GET("/v1/cost/rows", {
          params: { query: { ...scope, limit: 200, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last, pages) => (pages.length >= 25 ? undefined : (last.next ?? undefined)),
  });
}

export function idleQuery(query: QueryOf<"/v1/cost/idle">) {
  return queryOptions({
    queryKey: ["cost", "idle", query],
    queryFn: ({ signal }) => data(api.GET("/v1/cost/idle", { params: { query }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function forecastQuery(queue: string) {
  return queryOptions({
    queryKey: ["budgets", queue, "forecast"],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/budgets/{queue}/forecast", { params: { path: { queue } }, signal })),
    refetchInterval: 60_000,
  });
}
