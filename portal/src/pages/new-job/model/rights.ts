import { type Parents, roleIn } from "@/api/rights";
import type { Me } from "@/api/types";

/**
 * The classes that come with Berth, and who may use them, as docs/authorization.md says. A queue can
 * allow less; the plan tells.
 */
export const CLASSES = [
  { name: "low", value: 10 },
  { name: "normal", value: 50 },
  { name: "high", value: 100 },
  { name: "critical", value: 1000, across: true },
] as const;

export function classesFor(me: Me | undefined): string[] {
  const all = me?.cluster_role === "admin" || me?.cluster_role === "operator";
  return CLASSES.filter((c) => all || !("across" in c)).map((c) => c.name);
}

/** A number as the class it is, or as itself. */
export function className(priority: number): string {
  return CLASSES.find((c) => c.value === priority)?.name ?? String(priority);
}

/** Teams in which one may submit, one's own first. */
export function teamsFor(
  me: Me | undefined,
  teams: readonly { name: string }[],
  parents: Parents,
): string[] {
  if (!me) return [];
  const mine = me.teams.filter((m) => m.role !== "viewer").map((m) => m.team);
  const others = teams
    .map((t) => t.name)
    .filter((t) => {
      const role = roleIn(me, t, parents);
      return !mine.includes(t) && (me.cluster_role === "admin" || (role && role !== "viewer"));
    });
  return [...mine, ...others];
}
