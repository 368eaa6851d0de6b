import { flag, list, num, oneOf, type Raw, str } from "@/lib/search";
import { X_AXES, type XAxis } from "@/pages/experiments/search";

export const TABS = ["overview", "metrics", "artifacts"] as const;
export type RunTab = (typeof TABS)[number];

export interface RunSearch {
  tab?: RunTab | undefined;
  /** The metrics to draw, and how. */
  metrics?: string[] | undefined;
  x?: XAxis | undefined;
  log?: true | undefined;
  smooth?: number | undefined;
  /** The open folder of artifacts, and the file with an open preview. */
  path?: string | undefined;
  file?: string | undefined;
  /** Whether the drawer with the recipe is open. */
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
