// The teams that a model is shared with. Pure.

/** In place of a team: every team. */
export const EVERY_TEAM = "*";

export function teamWords(team: string | undefined): string {
  return team === EVERY_TEAM ? "every team" : `team ${team ?? ""}`.trim();
}

/** What a model can still be shared with: every team, and each other team without a share of its own. */
export function shareChoices(
  all: readonly string[],
  own: string,
  shared: readonly string[],
): string[] {
  return [EVERY_TEAM, ...[...all].sort()].filter((team) => team !== own && !shared.includes(team));
}
