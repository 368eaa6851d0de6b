import { oneOf, type Raw, str } from "@/lib/search";

export const VIEWS = ["map", "nodes", "gantt"] as const;
export const FIGURES = ["utilization", "memory", "power", "team", "age", "free"] as const;

export interface ClusterSearch {
  view?: (typeof VIEWS)[number] | undefined;
  figure?: (typeof FIGURES)[number] | undefined;
  from?: string | undefined;
  to?: string | undefined;
  q?: string | undefined;
  sort?: string | undefined;
  /** The node whose drawer is open. */
  open?: string | undefined;
}

export function clusterSearch(raw: Raw): ClusterSearch {
  return {
    view: oneOf(raw, "view", VIEWS),
    figure: oneOf(raw, "figure", FIGURES),
    from: str(raw, "from"),
    to: str(raw, "to"),
    q: str(raw, "q"),
    sort: str(raw, "sort"),
    open: str(raw, "open"),
  };
}
