import { queryOptions } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import { useChange } from "@/api/queries";
import { tracking } from "@/api/tracking";

/** The changes of a registered model and its versions. */
export type ModelChange =
  | { kind: "describe"; version?: string; description: string }
  | { kind: "tag"; version?: string; key: string; value: string }
  | { kind: "untag"; version?: string; key: string }
  | { kind: "alias"; alias: string; version: string }
  | { kind: "unalias"; alias: string }
  | { kind: "stage"; version: string; stage: string; archive: boolean }
  | { kind: "delete"; version?: string };

export function changeModel(team: string, name: string, change: ModelChange): Promise<unknown> {
  const version = "version" in change ? change.version : undefined;
  const of = version === undefined ? "registered-models" : "model-versions";
  const ask = (method: "POST" | "PATCH" | "DELETE", path: string, fields: object = {}) =>
    tracking(method, path, {
      team,
      fields: { name, ...(version !== undefined && { version }), ...fields },
    });
  switch (change.kind) {
    case "describe":
      return ask("PATCH", `${of}/update`, { description: change.description });
    case "tag":
      return ask("POST", `${of}/set-tag`, { key: change.key, value: change.value });
    case "untag":
      return ask("DELETE", `${of}/delete-tag`, { key: change.key });
    case "alias":
      return ask("POST", "registered-models/alias", { alias: change.alias });
    case "unalias":
      return ask("DELETE", "registered-models/alias", { alias: change.alias });
    case "stage":
      return ask("POST", "model-versions/transition-stage", {
        stage: change.stage,
        archive_existing_versions: change.archive,
      });
    case "delete":
      return ask("DELETE", `${of}/delete`);
  }
}

export function useModelChange(team: string, name: string) {
  return useChange(
    (change: ModelChange) => changeModel(team, name, change),
    "models",
    "lineage",
    "audit",
  );
}

/** The teams that may read a registered model of another team. */
export function modelSharesQuery(team: string, name: string) {
  return queryOptions({
    queryKey: ["models", "shares", team, name],
    queryFn: async ({ signal }) =>
      (
        await data(
          api.GET("/v1/models/{team}/{registered_model}/shares", {
            params: { path: { team, registered_model: name } },
            signal,
          }),
        )
      ).teams,
  });
}

export interface ShareChange {
  with: string;
  shared: boolean;
}

export function shareModel(team: string, name: string, change: ShareChange): Promise<unknown> {
  const where = { params: { path: { team, registered_model: name, with: change.with } } };
  const path = "/v1/models/{team}/{registered_model}/shares/{with}";
  return change.shared ? api.PUT(path, where) : api.DELETE(path, where);
}

export function useShareChange(team: string, name: string) {
  return useChange((change: ShareChange) => shareModel(team, name, change), "models", "audit");
}
