import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, data } from "@/api/client";
import { type ApiError, asApiError } from "@/api/error";
import type { Plan } from "@/api/types";

export function askPlan(file: string, hold: boolean, signal?: AbortSignal): Promise<Plan> {
  return data(
    api.POST("/v1/plan", {
      params: { query: hold ? { hold } : {} },
      body: file,
      bodySerializer: (body) => body,
      headers: { "content-type": "application/yaml" },
      ...(signal && { signal }),
    }),
  );
}

/** A value once it has not changed for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return settled;
}

export interface PlanState {
  plan: Plan | undefined;
  /** The plan is about an older text: a newer one is on its way. */
  old: boolean;
  error: ApiError | undefined;
  retry: () => void;
}

const PAUSE_MS = 350;

/** The plan of a text as it is typed. `undefined`: there is nothing to ask about yet. */
export function usePlan(file: string | undefined, hold: boolean): PlanState {
  const settled = useSettled(file, PAUSE_MS);
  const query = useQuery({
    queryKey: ["plan", settled, hold],
    // A newer text makes this one's request go away.
    queryFn: ({ signal }) => askPlan(settled as string, hold, signal),
    enabled: settled !== undefined,
    placeholderData: keepPreviousData,
    retry: (n, error) => asApiError(error).status >= 500 && n < 2,
    // The cluster moves on while somebody thinks.
    refetchInterval: (q) => (q.state.error ? false : 15_000),
    staleTime: 5000,
    gcTime: 60_000,
  });
  const asked = settled !== undefined && file !== undefined;
  return {
    plan: asked ? query.data : undefined,
    old: file !== settled || query.isPlaceholderData || (query.isFetching && !query.data),
    error: asked && query.error ? asApiError(query.error) : undefined,
    retry: () => void query.refetch(),
  };
}
