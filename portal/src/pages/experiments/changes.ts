// Changes of runs and experiments.

import { tracking } from "@/api/tracking";

export type RunChange =
  | { do: "rename"; run: string; name: string }
  | { do: "delete" | "restore"; run: string }
  | { do: "tag"; run: string; key: string; value: string }
  | { do: "untag"; run: string; key: string };

export function changeRun(change: RunChange): Promise<unknown> {
  const run_id = change.run;
  switch (change.do) {
    case "rename":
      return tracking("POST", "runs/update", { fields: { run_id, run_name: change.name } });
    case "delete":
    case "restore":
      return tracking("POST", `runs/${change.do}`, { fields: { run_id } });
    case "tag":
      return tracking("POST", "runs/set-tag", {
        fields: { run_id, key: change.key, value: change.value },
      });
    case "untag":
      return tracking("POST", "runs/delete-tag", { fields: { run_id, key: change.key } });
  }
}

/** Changes all runs, a few at a time. If the server refuses some, throws the first error at the end. */
export async function changeRuns(
  runs: readonly string[],
  kind: "delete" | "restore",
): Promise<number> {
  const left = [...runs];
  let done = 0;
  let refused: unknown;
  const one = async () => {
    for (let run = left.shift(); run !== undefined; run = left.shift()) {
      try {
        await changeRun({ do: kind, run });
        done += 1;
      } catch (e) {
        refused ??= e;
      }
    }
  };
  await Promise.all([one(), one(), one(), one()]);
  if (refused !== undefined) throw refused;
  return done;
}

export type ExperimentChange =
  | { do: "rename"; id: string; name: string }
  | { do: "delete" | "restore"; id: string };

export function changeExperiment(change: ExperimentChange, team: string | undefined) {
  const experiment_id = change.id;
  const fields =
    change.do === "rename" ? { experiment_id, new_name: change.name } : { experiment_id };
  const path = change.do === "rename" ? "update" : change.do;
  return tracking("POST", `experiments/${path}`, { fields, team });
}
