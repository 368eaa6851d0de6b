import { flag, list, num, oneOf, type Raw, str } from "@/lib/search";

export interface ExperimentsSearch {
  q?: string | undefined;
  sort?: string | undefined;
  deleted?: true | undefined;
}

export function experimentsSearch(raw: Raw): ExperimentsSearch {
  return { q: str(raw, "q"), sort: str(raw, "sort"), deleted: flag(raw, "deleted") };
}

export const VIEWS = ["table", "parallel", "curves", "scatter", "compare"] as const;
export type RunsView = (typeof VIEWS)[number];
export const X_AXES = ["step", "time", "cost"] as const;
export type XAxis = (typeof X_AXES)[number];

/** Keys are `metrics.loss`, `params.lr`, `tags.task` and attributes such as `start`. */
export interface RunsSearch {
  view?: RunsView | undefined;
  /** A filter in MLflow's grammar, or a word of the name. */
  q?: string | undefined;
  sort?: string | undefined;
  deleted?: true | undefined;
  cols?: string[] | undefined;
  /** The ids of the selected runs. */
  runs?: string[] | undefined;
  /** The axes of the parallel coordinates, their ranges, and the key that colours the lines. */
  axes?: string[] | undefined;
  brush?: string[] | undefined;
  colour?: string | undefined;
  /** The metrics of the curves, and how to draw them. */
  metrics?: string[] | undefined;
  x?: XAxis | undefined;
  log?: true | undefined;
  smooth?: number | undefined;
  /** The axes of the scatter. */
  sx?: string | undefined;
  sy?: string | undefined;
  /** Compare also shows equal values. */
  same?: true | undefined;
}

/** Long enough for a hundred ids of runs, or a long filter. */
const LONG = 4000;

export function runsSearch(raw: Raw): RunsSearch {
  return {
    view: oneOf(raw, "view", VIEWS),
    q: str(raw, "q", LONG),
    sort: str(raw, "sort"),
    deleted: flag(raw, "deleted"),
    cols: list(raw, "cols", LONG),
    runs: list(raw, "runs", LONG),
    axes: list(raw, "axes", LONG),
    brush: list(raw, "brush", LONG),
    colour: str(raw, "colour"),
    metrics: list(raw, "metrics", LONG),
    x: oneOf(raw, "x", X_AXES),
    log: flag(raw, "log"),
    smooth: num(raw, "smooth"),
    sx: str(raw, "sx"),
    sy: str(raw, "sy"),
    same: flag(raw, "same"),
  };
}
