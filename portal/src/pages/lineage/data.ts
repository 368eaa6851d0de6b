import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { address, request } from "@/api/client";
import type { LineageWay } from "./search";
import type { Lineage } from "./wire";

/** What something came from and what came from it. Other pages ask this, too. */
export function lineageQuery(of: string, team: string | undefined, way: LineageWay = "both") {
  return queryOptions({
    queryKey: ["lineage", of, team, way],
    queryFn: async ({ signal }): Promise<Lineage> => {
      const response = await request(address("/v1/lineage", { of, team, way }), { signal });
      return (await response.json()) as Lineage;
    },
    placeholderData: keepPreviousData,
  });
}
