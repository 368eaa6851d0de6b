import { useMe } from "./session";
import type { Me } from "./types";

/**
 * Models and data belong to a team, and their names mean something else in each: the team that is
 * chosen at the top, else the one that the server takes where none is named.
 */
export function oneTeam(me: Me | undefined, chosen: string | undefined): string | undefined {
  if (chosen !== undefined || !me) return chosen;
  return me.default_team ?? (me.teams.map((t) => t.team).sort()[0] || "default");
}

export function useOneTeam(chosen: string | undefined): string | undefined {
  return oneTeam(useMe(), chosen);
}
