import { useMemo } from "react";
import { namesOf, type Row } from "./model/row";
import type { RunsSearch } from "./search";

/** In the address and in a chart. */
export const MOST_CHOSEN = 100;

/** A wider table is not read; `berth runs compare` takes as many. */
export const MOST_COMPARED = 20;

/** What the views of runs have in common. */
export interface ViewProps {
  rows: readonly Row[];
  chosen: readonly Row[];
  search: RunsSearch;
  set: (change: Partial<RunsSearch>) => void;
  open: (run: string) => void;
}

/** Names change seldom: not with every value that comes in. */
export function useNames(rows: readonly Row[] | undefined) {
  const size = rows?.length ?? 0;
  return useMemo(() => namesOf(rows ?? []), [size]);
}
