import { useMemo } from "react";
import { namesOf, type Row } from "./model/row";
import type { RunsSearch } from "./search";

/** The maximum number of selected runs, because the address and the charts contain them all. */
export const MOST_CHOSEN = 100;

/** The maximum number of columns of a comparison, as of `berth runs compare`. */
export const MOST_COMPARED = 20;

/** The props of each view of runs. */
export interface ViewProps {
  rows: readonly Row[];
  chosen: readonly Row[];
  search: RunsSearch;
  set: (change: Partial<RunsSearch>) => void;
  open: (run: string) => void;
}

/** The names of metrics, params and tags. New values of the same runs rarely add names. */
export function useNames(rows: readonly Row[] | undefined) {
  const size = rows?.length ?? 0;
  return useMemo(() => namesOf(rows ?? []), [size]);
}
