import { oneOf, type Raw, str } from "@/lib/search";

export const TABS = ["models", "prompts", "data"] as const;
export type ModelsTab = (typeof TABS)[number];

export interface ModelsSearch {
  tab?: ModelsTab | undefined;
  q?: string | undefined;
  sort?: string | undefined;
  /** The version of data in the open drawer. */
  open?: string | undefined;
}

export function modelsSearch(raw: Raw): ModelsSearch {
  return {
    tab: oneOf(raw, "tab", TABS),
    q: str(raw, "q"),
    sort: str(raw, "sort"),
    open: str(raw, "open"),
  };
}
