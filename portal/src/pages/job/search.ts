import { flag, num, oneOf, type Raw, str } from "@/lib/search";

export const TABS = ["overview", "logs", "metrics", "events", "files", "file", "terminal"] as const;
export type JobTab = (typeof TABS)[number];

export interface JobSearch {
  tab?: JobTab | undefined;
  attempt?: number | undefined;
  /** A node's part of the job, and a process of it. */
  task?: number | undefined;
  rank?: number | undefined;
  /** Searched in the whole log, by the server. */
  q?: string | undefined;
  /** That is a regular expression. */
  regex?: true | undefined;
  /** A line of the log, from 1. */
  line?: number | undefined;
  /** A folder of its output. */
  path?: string | undefined;
  /** How far back the figures go: `1h`, `all`. */
  span?: string | undefined;
}

export function jobSearch(raw: Raw): JobSearch {
  return {
    tab: oneOf(raw, "tab", TABS),
    attempt: num(raw, "attempt"),
    task: num(raw, "task"),
    rank: num(raw, "rank"),
    q: str(raw, "q"),
    regex: flag(raw, "regex"),
    line: num(raw, "line"),
    path: str(raw, "path"),
    span: str(raw, "span"),
  };
}
