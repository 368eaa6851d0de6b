import { keepPreviousData, queryOptions, useQuery } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import { attemptsQuery, jobFileQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job, JobClone, JobSubmitted, Plan } from "@/api/types";
import { type Changes, withKeys } from "./file";
import { FINAL, HOLDS, isArray, type Projection, project } from "./project";
import { stopPreviewQuery, timelineQuery } from "./routes";
import { drawnOf } from "./timeline";
import type { Deed } from "./why";

/** What would become of a file, if it were submitted now. */
export function planTextQuery(file: string) {
  return queryOptions({
    queryKey: ["plan", file],
    queryFn: ({ signal }): Promise<Plan> =>
      data(
        api.POST("/v1/plan", {
          body: file,
          bodySerializer: (text) => text,
          headers: { "content-type": "application/yaml" },
          signal,
        }),
      ),
    staleTime: 30_000,
    placeholderData: keepPreviousData,
    retry: false,
  });
}

/** A file without what would keep a plan from saying when it starts and what it costs. */
export function planned(file: string, changes: Changes = {}): string {
  return withKeys(file, { schedule: undefined, ...changes });
}

/** The file and the plan of it; nothing of an ended job, which has neither future nor price. */
export function useOutlook(job: Job | undefined): {
  file: string | undefined;
  plan: Plan | undefined;
} {
  const open = job !== undefined && !FINAL.has(job.state);
  const mayPlan = useMay("JobsPlan", { team: job?.team, user: job?.user }).ok;
  const file = useQuery({ ...jobFileQuery(job?.id ?? ""), enabled: open }).data;
  const plan = useQuery({
    ...planTextQuery(planned(file ?? "")),
    enabled: open && mayPlan && file !== undefined,
    staleTime: 5 * 60_000,
  }).data;
  return { file, plan };
}

export function useProjection(job: Job, now: number): Projection {
  const { file, plan } = useOutlook(job);
  const attempts = useQuery(attemptsQuery(job.id)).data;
  return project(job, now, { file, plan, attempts });
}

/** The line of a job's attempts. An array has none of its own. */
export function useTimeline(job: Job) {
  const query = useQuery({ ...timelineQuery(job.id), enabled: !isArray(job) });
  return {
    drawn: query.data && drawnOf(query.data),
    notes: query.data?.notes ?? [],
    error: query.error,
    retry: () => void query.refetch(),
  };
}

/** What would be lost if it were stopped now; nothing of what holds nothing, and of an array. */
export function useStopPreview(job: Job) {
  return useQuery({ ...stopPreviewQuery(job.id), enabled: HOLDS.has(job.state) && !isArray(job) });
}

/** The overlay of a clone: what is to be left out is null there. */
export function overlay(keys: Changes): string {
  return Object.entries(keys)
    .map(([key, value]) => `${key}: ${value ?? "null"}\n`)
    .join("");
}

export function cloneJob(job: string, keys: Changes, given?: JobClone): Promise<JobSubmitted> {
  return data(
    api.POST("/v1/jobs/{job}/clone", {
      params: { path: { job } },
      body: { file: given?.file ?? overlay(keys), resume: given?.resume ?? false },
    }),
  );
}

/** Which keys of the file a change is the same as, to ask for its price. */
export function keysOf(deed: Deed): Changes | undefined {
  switch (deed.kind) {
    case "set": {
      const keys: Changes = {};
      for (const [key, value] of Object.entries(deed.change))
        keys[key] = value === null ? undefined : String(value);
      return keys;
    }
    case "replace":
      return deed.keys;
    case "resume":
      return { hold: undefined };
    case "advice":
      return undefined;
  }
}
