import {
  infiniteQueryOptions,
  keepPreviousData,
  type QueryClient,
  queryOptions,
  useMutation,
  useQueryClient,
} from "@tanstack/react-query";
import { api, data } from "./client";
import type { Job, JobChange, JobList, QueryOf } from "./types";

/**
 * What the pages read, as query options: `useQuery(jobQuery("17"))`. The first word of a key is the
 * noun; live.ts finds by it what an event touches. Nothing here needs polling: events say when.
 */
export type JobsFilter = Omit<QueryOf<"/v1/jobs">, "cursor" | "limit">;

/** Rows beyond these are not loaded: a filter finds better than a scroll bar. */
export const MOST_ROWS = 5000;
const PAGE = 200;

export const keys = {
  jobs: ["jobs"] as const,
  job: (id: string) => ["job", id] as const,
};

/** Pages of the list; `rowsOf` has them as one. */
export function jobsQuery(filter: JobsFilter, page = PAGE) {
  return infiniteQueryOptions({
    queryKey: ["jobs", "pages", filter, page],
    queryFn: ({ pageParam, signal }) =>
      data(
        api.GET("/v1/jobs", {
          params: { query: { ...filter, limit: page, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last: JobList, pages: JobList[]) =>
      pages.length * page >= MOST_ROWS ? undefined : (last.next ?? undefined),
    placeholderData: keepPreviousData,
  });
}

export function rowsOf(pages: { pages: JobList[] } | undefined): Job[] {
  return pages?.pages.flatMap((p) => p.jobs) ?? NO_JOBS;
}
const NO_JOBS: Job[] = [];

/** One short list, for panels. */
export function someJobsQuery(filter: JobsFilter, limit = 20) {
  return queryOptions({
    queryKey: ["jobs", "some", filter, limit],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/jobs", { params: { query: { ...filter, limit } }, signal })),
    placeholderData: keepPreviousData,
  });
}

export function jobQuery(job: string) {
  return queryOptions({
    queryKey: ["job", job],
    queryFn: ({ signal }) => data(api.GET("/v1/jobs/{job}", { params: { path: { job } }, signal })),
  });
}

export function whyQuery(job: string) {
  return queryOptions({
    queryKey: ["job", job, "why"],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/jobs/{job}/why", { params: { path: { job } }, signal })),
    // An estimate grows old without an event.
    refetchInterval: 30_000,
  });
}

export function attemptsQuery(job: string) {
  return queryOptions({
    queryKey: ["job", job, "attempts"],
    queryFn: async ({ signal }) =>
      (await data(api.GET("/v1/jobs/{job}/attempts", { params: { path: { job } }, signal }))).items,
  });
}

/** The job's file as it was submitted, as YAML. */
export async function jobFile(job: string, signal?: AbortSignal): Promise<string> {
  const text: unknown = await data(
    api.GET("/v1/jobs/{job}/file", { params: { path: { job } }, parseAs: "text", signal }),
  );
  return String(text ?? "");
}

export function jobFileQuery(job: string) {
  return queryOptions({
    queryKey: ["job-file", job],
    queryFn: ({ signal }) => jobFile(job, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export function jobFiguresQuery(job: string, query: QueryOf<"/v1/jobs/{job}/figures"> = {}) {
  return queryOptions({
    queryKey: ["job", job, "figures", query],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/jobs/{job}/figures", { params: { path: { job }, query }, signal })),
    refetchInterval: 15_000,
    placeholderData: keepPreviousData,
  });
}

export const queuesQuery = queryOptions({
  queryKey: ["queues"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/queues", { signal }))).items,
});

/** With its line of waiting jobs. */
export function queueQuery(queue: string) {
  return queryOptions({
    queryKey: ["queues", queue],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/queues/{queue}", { params: { path: { queue } }, signal })),
  });
}

export const sharesQuery = queryOptions({
  queryKey: ["shares"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/shares", { signal }))).items,
});

export const gpusQuery = queryOptions({
  queryKey: ["gpus"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/gpus", { signal }))).items,
  // Utilization moves without events.
  refetchInterval: 15_000,
});

export const nodesQuery = queryOptions({
  queryKey: ["nodes"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/nodes", { signal }))).items,
});

export function nodeQuery(node: string) {
  return queryOptions({
    queryKey: ["nodes", node],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/nodes/{node}", { params: { path: { node } }, signal })),
  });
}

export function nodeFiguresQuery(node: string, query: QueryOf<"/v1/nodes/{node}/figures"> = {}) {
  return queryOptions({
    queryKey: ["nodes", node, "figures", query],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/nodes/{node}/figures", { params: { path: { node }, query }, signal })),
    refetchInterval: 15_000,
    placeholderData: keepPreviousData,
  });
}

export function costQuery(query: QueryOf<"/v1/cost">) {
  return queryOptions({
    queryKey: ["cost", query],
    queryFn: ({ signal }) => data(api.GET("/v1/cost", { params: { query }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}

export const budgetsQuery = queryOptions({
  queryKey: ["budgets"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/budgets", { signal }))).items,
  refetchInterval: 60_000,
});

export const usersQuery = queryOptions({
  queryKey: ["users"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/users", { signal }))).items,
});

export function membersQuery(team: string) {
  return queryOptions({
    queryKey: ["teams", team, "members"],
    queryFn: async ({ signal }) =>
      (await data(api.GET("/v1/teams/{team}/members", { params: { path: { team } }, signal })))
        .items,
  });
}

export const projectsQuery = queryOptions({
  queryKey: ["projects"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/projects", { signal }))).items,
});

export const tokensQuery = queryOptions({
  queryKey: ["tokens"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/tokens", { signal }))).items,
});

export const secretsQuery = queryOptions({
  queryKey: ["secrets"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/secrets", { signal }))).items,
});

export const volumesQuery = queryOptions({
  queryKey: ["volumes"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/volumes", { signal }))).items,
});

export const templatesQuery = queryOptions({
  queryKey: ["templates"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/templates", { signal }))).items,
});

export const schedulesQuery = queryOptions({
  queryKey: ["schedules"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/schedules", { signal }))).items,
});

export const policyQuery = queryOptions({
  queryKey: ["policy"],
  queryFn: ({ signal }) => data(api.GET("/v1/policy", { signal })),
});

export const configQuery = queryOptions({
  queryKey: ["config"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/config", { signal }))).items,
});

export const versionQuery = queryOptions({
  queryKey: ["version"],
  queryFn: ({ signal }) => data(api.GET("/v1/version", { signal })),
  staleTime: Number.POSITIVE_INFINITY,
});

export const readyQuery = queryOptions({
  queryKey: ["ready"],
  queryFn: ({ signal }) => data(api.GET("/readyz", { signal })),
  refetchInterval: 15_000,
});

export function auditQuery(query: Omit<QueryOf<"/v1/audit">, "cursor">) {
  return infiniteQueryOptions({
    queryKey: ["audit", query],
    queryFn: ({ pageParam, signal }) =>
      data(
        api.GET("/v1/audit", {
          params: { query: { ...query, ...(pageParam && { cursor: pageParam }) } },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (last, pages) => (pages.length >= 50 ? undefined : (last.next ?? undefined)),
    placeholderData: keepPreviousData,
  });
}

/** Everything that an action on a job can change. */
export function touchJob(client: QueryClient, id: string, answer?: Job) {
  if (answer) client.setQueryData(["job", id], answer);
  for (const queryKey of [["job", id], ["jobs"], ["queues"], ["gpus"]])
    void client.invalidateQueries({ queryKey });
}

export type JobAction =
  | { kind: "stop"; now?: boolean }
  | { kind: "pause" }
  | { kind: "resume" }
  | { kind: "set"; change: JobChange };

/** One action on one job. Throws ApiError. */
export function actOnJob(job: string, action: JobAction): Promise<Job> {
  const params = { path: { job } };
  switch (action.kind) {
    case "stop":
      return data(
        api.POST("/v1/jobs/{job}/stop", { params, body: action.now ? { now: true } : {} }),
      );
    case "pause":
      return data(api.POST("/v1/jobs/{job}/pause", { params }));
    case "resume":
      return data(api.POST("/v1/jobs/{job}/resume", { params }));
    case "set":
      return data(api.PATCH("/v1/jobs/{job}", { params, body: action.change }));
  }
}

export function useJobAction(job: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (action: JobAction) => actOnJob(job, action),
    onSuccess: (answer) => touchJob(client, job, answer),
  });
}

/** Any other change: the call, and the first words of the keys that it makes stale. */
export function useChange<V, T>(change: (value: V) => Promise<T>, ...touches: string[]) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: () =>
      Promise.all(touches.map((noun) => client.invalidateQueries({ queryKey: [noun] }))),
  });
}
