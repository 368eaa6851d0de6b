import type { May } from "@/api/rights";
import { useMayFor } from "@/api/session";
import type { ModelVersion, RegisteredModel } from "@/api/tracking";

export interface ModelRights {
  /** Aliases, stages, tags and descriptions. */
  write: May;
  deleteModel: May;
  deleteVersion: (version: ModelVersion) => May;
}

export function useModelRights(team: string, model: RegisteredModel | undefined): ModelRights {
  const may = useMayFor();
  return {
    write: may("JobsSubmit", { team }),
    deleteModel: may("JobsControl", { team, user: model?.user_id }),
    deleteVersion: (version) => may("JobsControl", { team, user: version.user_id }),
  };
}
