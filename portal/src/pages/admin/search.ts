import { flag, num, oneOf, type Raw, str } from "@/lib/search";
import { SECTIONS, type SectionId } from "./sections";

export interface AdminSearch {
  tab?: SectionId | undefined;
  /** Of the audit log. */
  who?: string | undefined;
  what?: string | undefined;
  refused?: true | undefined;
  /** The row whose details are open. */
  open?: number | undefined;
}

const IDS = SECTIONS.map((section) => section.id);

export function adminSearch(raw: Raw): AdminSearch {
  return {
    tab: oneOf(raw, "tab", IDS),
    who: str(raw, "who"),
    what: str(raw, "what"),
    refused: flag(raw, "refused"),
    open: num(raw, "open"),
  };
}
