import { useRef } from "react";

interface Failing {
  data: unknown;
  error: unknown;
  failureReason: unknown;
}

/**
 * What is wrong, from the first failed try on and until there is an answer. A query that is asked
 * again and again by events would otherwise show its skeleton and its error in turns.
 */
export function useSticky(query: Failing): unknown {
  const kept = useRef<unknown>(undefined);
  const now = query.error ?? query.failureReason ?? undefined;
  if (now) kept.current = now;
  else if (query.data !== undefined) kept.current = undefined;
  return kept.current;
}
