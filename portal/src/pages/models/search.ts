import { oneOf, type Raw, str } from "@/lib/search";
import { WHOSE, type Whose } from "./model";

export const TABS = ["models", "prompts", "data"] as const;
export type ModelsTab = (typeof TABS)[number];

export interface ModelsSearch {
  tab?: ModelsTab | undefined;
  q?: string | undefined;
  /** Models of the team, or those that other teams share with it. */
  whose?: Whose | undefined;
  sort?: string | undefined;
  /** The version of data in the open drawer. */
  open?: string | undefined;
}

export function modelsSearch(raw: Raw): ModelsSearch {
  return {
    tab: oneOf(raw, "tab", TABS),
    q: str(raw, "q"),
    whose: oneOf(raw, "whose", WHOSE),
    sort: str(raw, "sort"),
    open: str(raw, "open"),
  };
}
