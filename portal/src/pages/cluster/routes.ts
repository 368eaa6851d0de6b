import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data } from "@/api/client";

/** Routes of the cluster beyond those that every page reads. */
export function leasesQuery(from: string) {
  return queryOptions({
    queryKey: ["leases", from],
    queryFn: ({ signal }) => data(api.GET("/v1/leases", { params: { query: { from } }, signal })),
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}

export function figuresQuery(figure: string, hours: number) {
  return queryOptions({
    queryKey: ["gpus", "figures", figure, hours],
    queryFn: ({ signal }) => {
      const from = new Date(Date.now() - hours * 3_600_000).toISOString();
      return data(api.GET("/v1/gpus/figures", { params: { query: { figure, from } }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: 30_000,
  });
}

export function drainPreviewQuery(node: string) {
  return queryOptions({
    queryKey: ["nodes", node, "drain-preview"],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/nodes/{node}/drain/preview", { params: { path: { node } }, signal })),
    gcTime: 0,
  });
}
