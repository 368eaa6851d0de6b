import { type Raw, str } from "@/lib/search";

export interface QueueSearch {
  /** Only what waits in it and below it. */
  queue?: string | undefined;
  /** The job whose drawer is open. */
  open?: string | undefined;
}

export function queueSearch(raw: Raw): QueueSearch {
  return { queue: str(raw, "queue"), open: str(raw, "open") };
}
