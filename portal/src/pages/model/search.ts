import { flag, list, oneOf, type Raw, str } from "@/lib/search";

export const TABS = ["versions", "changes", "shares"] as const;
export type ModelTab = (typeof TABS)[number];

export interface ModelSearch {
  tab?: ModelTab | undefined;
  /** The version in the open drawer. */
  version?: string | undefined;
  /** Two versions, the older one first. */
  compare?: string[] | undefined;
  /** Show equal values, too. */
  same?: true | undefined;
  sort?: string | undefined;
}

export function modelSearch(raw: Raw): ModelSearch {
  const compare = list(raw, "compare")?.slice(0, 2);
  return {
    tab: oneOf(raw, "tab", TABS),
    version: str(raw, "version"),
    compare: compare?.length === 2 ? compare : undefined,
    same: flag(raw, "same"),
    sort: str(raw, "sort"),
  };
}
