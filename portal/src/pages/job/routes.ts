import { infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data, link } from "@/api/client";
import type { JobRef } from "@/api/types";

/** Routes of a job beyond those that other pages read. */
export function timelineQuery(job: string) {
  return queryOptions({
    queryKey: ["job", job, "timeline"],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/jobs/{job}/timeline", { params: { path: { job } }, signal })),
  });
}

export function stopPreviewQuery(job: string) {
  return queryOptions({
    queryKey: ["job", job, "stop-preview"],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/jobs/{job}/stop/preview", { params: { path: { job } }, signal })),
    // Who asks waits for it before they press a button.
    retry: false,
    staleTime: 5000,
  });
}

export interface LogSearch {
  text: string | undefined;
  regex: boolean;
  attempt: number | undefined;
}

export function logSearchQuery(job: string, search: LogSearch) {
  const { text, regex, attempt } = search;
  return infiniteQueryOptions({
    queryKey: ["log-search", job, search],
    queryFn: ({ pageParam, signal }) =>
      data(
        api.GET("/v1/jobs/{job}/logs/search", {
          params: {
            path: { job },
            query: {
              text,
              regex,
              attempt,
              ignore_case: true,
              limit: 200,
              ...(pageParam && { cursor: pageParam }),
            },
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last, pages) => (pages.length >= 50 ? undefined : (last.next ?? undefined)),
    enabled: Boolean(text),
    // A regular expression that is none stays so.
    retry: false,
  });
}

export function filesQuery(job: string, path: string) {
  return queryOptions({
    queryKey: ["job", job, "files", path],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/jobs/{job}/files", { params: { path: { job }, query: { path } }, signal })),
    placeholderData: keepPreviousData,
  });
}

/** Where it is saved from. */
export function fileAddress(job: string, path: string): string {
  return link("/v1/jobs/{job}/files/content", { path: { job }, query: { path } });
}

/** `13 goes-first`, or as much as one may know of it: `13 of vision`. */
export function refText(ref: JobRef): string {
  if (ref.name) return `${ref.job} ${ref.name}`;
  return ref.team ? `${ref.job} of ${ref.team}` : ref.job;
}
