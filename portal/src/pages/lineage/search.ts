import { oneOf, type Raw, str } from "@/lib/search";

export const VIEWS = ["graph", "list"] as const;
export type LineageView = (typeof VIEWS)[number];
export const WAYS = ["both", "up", "down"] as const;
export type LineageWay = (typeof WAYS)[number];

export interface LineageSearch {
  /** The start of the lineage: `model:chat@3`, `run:ID`, `data:c4@v3`, `job:17`. */
  of?: string | undefined;
  /** The node with open details. */
  node?: string | undefined;
  view?: LineageView | undefined;
  way?: LineageWay | undefined;
}

export function lineageSearch(raw: Raw): LineageSearch {
  return {
    of: str(raw, "of"),
    node: str(raw, "node"),
    view: oneOf(raw, "view", VIEWS),
    way: oneOf(raw, "way", WAYS),
  };
}
