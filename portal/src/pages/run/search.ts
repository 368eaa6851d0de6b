import { flag, list, num, oneOf, type Raw, str } from "@/lib/search";
import { X_AXES, type XAxis } from "@/pages/experiments/search";

export const TABS = ["overview", "metrics", "artifacts"] as const;
export type RunTab = (typeof TABS)[number];

export interface RunSearch {
  tab?: RunTab | undefined;
  /** Metrics that are drawn, and how. */
  metrics?: string[] | undefined;
  x?: XAxis | undefined;
  log?: true | undefined;
  smooth?: number | undefined;
  /** A folder of its artifacts, and the file whose preview is open. */
  path?: string | undefined;
  file?: string | undefined;
  /** The drawer with its recipe is open. */
  reproduce?: true | undefined;
}

export function runSearch(raw: Raw): RunSearch {
  return {
    tab: oneOf(raw, "tab", TABS),
    metrics: list(raw, "metrics", 4000),
    x: oneOf(raw, "x", X_AXES),
    log: flag(raw, "log"),
    smooth: num(raw, "smooth"),
    path: str(raw, "path", 1000),
    file: str(raw, "file", 1000),
    reproduce: flag(raw, "reproduce"),
  };
}
