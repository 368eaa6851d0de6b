import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import type { LineageWay } from "./search";

/** The lineage of a node. Other pages use it, too. */
export function lineageQuery(of: string, team: string | undefined, way: LineageWay = "both") {
  return queryOptions({
    queryKey: ["lineage", of, team, way],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/lineage", { params: { query: { of, team, way } }, signal })),
    placeholderData: keepPreviousData,
  });
}
