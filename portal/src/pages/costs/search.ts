import { oneOf, type Raw, str } from "@/lib/search";

export const BY = ["team", "project", "experiment", "user", "job"] as const;
export type By = (typeof BY)[number];
export const PERIODS = ["month", "last-month", "7d", "30d", "90d"] as const;
export type Period = (typeof PERIODS)[number];

export interface CostsSearch {
  by?: By | undefined;
  period?: Period | undefined;
  /** Filters, each by a click on a row. */
  team?: string | undefined;
  project?: string | undefined;
  experiment?: string | undefined;
  user?: string | undefined;
  sort?: string | undefined;
  /** The row whose rows are open. */
  open?: string | undefined;
}

export function costsSearch(raw: Raw): CostsSearch {
  return {
    by: oneOf(raw, "by", BY),
    period: oneOf(raw, "period", PERIODS),
    project: str(raw, "project"),
    experiment: str(raw, "experiment"),
    user: str(raw, "user"),
    sort: str(raw, "sort"),
    open: str(raw, "open"),
  };
}

const DAY = 86_400_000;

/** From and to, in UTC as the books have it; `to` is open where it is now. */
export function timeOf(period: Period, now: number): { from: string; to?: string } {
  const date = new Date(now);
  const month = (back: number) =>
    new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - back, 1)).toISOString();
  // Whole days, so that an answer is kept for a while.
  const days = (n: number) => new Date(Math.floor(now / DAY) * DAY - (n - 1) * DAY).toISOString();
  switch (period) {
    case "month":
      return { from: month(0) };
    case "last-month":
      return { from: month(1), to: month(0) };
    case "7d":
      return { from: days(7) };
    case "30d":
      return { from: days(30) };
    case "90d":
      return { from: days(90) };
  }
}
