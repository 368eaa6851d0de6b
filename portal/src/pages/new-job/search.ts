import { oneOf, type Raw, str } from "@/lib/search";

export const MODES = ["form", "yaml", "command"] as const;
export type Mode = (typeof MODES)[number];

export interface NewJobSearch {
  /** A job whose file one starts from. */
  clone?: string | undefined;
  /** The same, as other pages call it; read as `clone`. */
  from?: string | undefined;
  template?: string | undefined;
  mode?: Mode | undefined;
}

export function newJobSearch(raw: Raw): NewJobSearch {
  return {
    clone: str(raw, "clone") ?? str(raw, "from"),
    // Otherwise it would stay in the address, and be taken over for ever.
    from: undefined,
    template: str(raw, "template"),
    mode: oneOf(raw, "mode", MODES),
  };
}
