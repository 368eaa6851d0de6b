import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, data } from "@/api/client";

/** Versions of data of a team. */
export function dataQuery(team: string) {
  return queryOptions({
    queryKey: ["data", team],
    queryFn: async ({ signal }) =>
      (await data(api.GET("/v1/data", { params: { query: { team } }, signal }))).items,
    placeholderData: keepPreviousData,
  });
}

/** The differences between two versions of data, such as `c4@v2` and `c4@v3`. */
export function dataDiffQuery(team: string, from: string, to: string) {
  return queryOptions({
    queryKey: ["data", team, "diff", from, to],
    queryFn: ({ signal }) =>
      data(
        api.GET("/v1/data/{team}/{data}/diff", {
          params: { path: { team, data: from }, query: { to } },
          signal,
        }),
      ),
    // Versions never change.
    staleTime: Number.POSITIVE_INFINITY,
  });
}
