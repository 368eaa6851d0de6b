import { list, oneOf, type Raw, str } from "@/lib/search";

export const SORTS = [
  "id",
  "name",
  "state",
  "priority",
  "gpus",
  "cost",
  "eta",
  "submitted",
] as const;
type Sort = (typeof SORTS)[number];
const BOTH = SORTS.flatMap((s) => [s, `-${s}`] as const) as readonly (Sort | `-${Sort}`)[];

export interface JobsSearch {
  q?: string | undefined;
  state?: string[] | undefined;
  user?: string | undefined;
  project?: string | undefined;
  experiment?: string | undefined;
  since?: string | undefined;
  sort?: Sort | `-${Sort}` | undefined;
  /** The job whose drawer is open. */
  open?: string | undefined;
}

export function jobsSearch(raw: Raw): JobsSearch {
  return {
    q: str(raw, "q"),
    state: list(raw, "state"),
    user: str(raw, "user"),
    project: str(raw, "project"),
    experiment: str(raw, "experiment"),
    since: str(raw, "since"),
    sort: oneOf(raw, "sort", BOTH),
    open: str(raw, "open"),
  };
}
