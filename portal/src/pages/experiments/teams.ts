import { useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { teamsQuery, useMe } from "@/api/session";
import type { Experiment } from "@/api/tracking";
import { teamOf } from "@/api/tracking";

/** The teams whose experiments and models the page lists: the team of the address, or all of the user. */
export function useTrackingTeams(): readonly string[] | undefined {
  const me = useMe();
  const all = useQuery(teamsQuery);
  const chosen = useSearch({ strict: false, select: (s: { team?: string }) => s.team });
  if (chosen) return [chosen];
  if (!me) return undefined;
  const mine = me.teams.map((t) => t.team);
  if (mine.length > 0) return mine;
  // Operators and admins of the cluster may read the experiments of every team.
  if (me.cluster_role !== "operator" && me.cluster_role !== "admin") return mine;
  return all.data?.map((t) => t.name).slice(0, MOST_TEAMS);
}

/** The maximum, because each team takes a request. */
const MOST_TEAMS = 50;

/** The name without the team, which the server puts before names of other teams. */
export function plainName(experiment: Experiment): string {
  const team = teamOf(experiment.artifact_location);
  return team && experiment.name.startsWith(`${team}/`)
    ? experiment.name.slice(team.length + 1)
    : experiment.name;
}

/** The command that runs a script with tracking. */
export function beginCommand(): string {
  return `MLFLOW_TRACKING_URI=${location.origin} MLFLOW_TRACKING_TOKEN=$(berth token create training --scope jobs) python train.py`;
}
