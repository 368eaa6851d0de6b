import { asApiError } from "@/api/error";
import type { May } from "@/api/rights";
import { useMayFor } from "@/api/session";
import type { ModelVersion, RegisteredModel } from "@/api/tracking";
import { type Owner, sharedBy } from "../models/model";

export interface ModelRights {
  /** The team of the model and its name there. */
  owner: Owner;
  /** Whether the user may read the runs, files and lineage of the owner. */
  inside: boolean;
  /** Undefined for a model that another team shares: under its name there, it is read-only. */
  change: ChangeRights | undefined;
}

export interface ChangeRights {
  /** Aliases, stages, tags and descriptions. */
  write: May;
  /** Deleting and sharing. */
  manage: May;
  deleteVersion: (version: ModelVersion) => May;
}

/** Whether an error says that the user cannot read what the owner of a shared model keeps to itself. */
export function isClosed(error: unknown, { inside }: ModelRights): boolean {
  return !inside && asApiError(error).status === 404;
}

export function useModelRights(team: string, model: RegisteredModel): ModelRights {
  const may = useMayFor();
  const shared = sharedBy(model.name);
  if (shared)
    return {
      owner: shared,
      inside: may("LogsRead", { team: shared.team }).ok,
      change: undefined,
    };
  return {
    owner: { team, name: model.name },
    inside: true,
    change: {
      write: may("JobsSubmit", { team }),
      manage: may("JobsControl", { team, user: model.user_id }),
      deleteVersion: (version) => may("JobsControl", { team, user: version.user_id }),
    },
  };
}
