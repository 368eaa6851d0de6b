import type { Me, Role, Scope } from "./types";

/**
 * Who may do what: the table of crates/berth-api/src/access.rs, so that the portal shows nobody what
 * the server would refuse. rights.test.ts compares it with docs/authorization.md.
 */
type Least = Role | "anyone" | "nobody";
type Kind = "reads" | "runs" | "manages";
type Needs = readonly [kind: Kind, own: Least, team: Least, cluster: Least];

export const PERMISSIONS = {
  Public: ["reads", "anyone", "anyone", "anyone"],
  SignIn: ["manages", "anyone", "anyone", "anyone"],
  ClusterRead: ["reads", "anyone", "anyone", "anyone"],
  JobsRead: ["reads", "viewer", "viewer", "viewer"],
  LogsRead: ["reads", "viewer", "viewer", "operator"],
  JobsPlan: ["reads", "viewer", "viewer", "operator"],
  JobsSubmit: ["runs", "researcher", "researcher", "admin"],
  JobsControl: ["runs", "researcher", "team_lead", "admin"],
  JobsShell: ["runs", "researcher", "team_lead", "admin"],
  CostRead: ["reads", "viewer", "viewer", "viewer"],
  BudgetsRead: ["reads", "viewer", "viewer", "viewer"],
  BudgetsManage: ["manages", "nobody", "nobody", "admin"],
  TemplatesRead: ["reads", "viewer", "viewer", "viewer"],
  TemplatesManage: ["runs", "researcher", "team_lead", "admin"],
  SchedulesRead: ["reads", "viewer", "viewer", "viewer"],
  SchedulesManage: ["runs", "researcher", "team_lead", "admin"],
  SecretsRead: ["reads", "researcher", "researcher", "operator"],
  SecretsManage: ["manages", "team_lead", "team_lead", "admin"],
  VolumesRead: ["reads", "viewer", "viewer", "viewer"],
  VolumesManage: ["manages", "team_lead", "team_lead", "admin"],
  ArtifactsRead: ["reads", "viewer", "viewer", "operator"],
  ArtifactsWrite: ["runs", "researcher", "researcher", "admin"],
  DataRead: ["reads", "viewer", "viewer", "operator"],
  DataWrite: ["runs", "researcher", "researcher", "admin"],
  DataManage: ["runs", "researcher", "team_lead", "admin"],
  DataClean: ["manages", "team_lead", "team_lead", "admin"],
  StorageManage: ["manages", "nobody", "nobody", "admin"],
  ProjectsRead: ["reads", "viewer", "viewer", "viewer"],
  ProjectsManage: ["manages", "team_lead", "team_lead", "admin"],
  MembersRead: ["reads", "viewer", "viewer", "viewer"],
  MembersManage: ["manages", "team_lead", "team_lead", "admin"],
  TeamsManage: ["manages", "nobody", "nobody", "admin"],
  UsersRead: ["reads", "anyone", "nobody", "operator"],
  UsersManage: ["manages", "nobody", "nobody", "admin"],
  TokensRead: ["reads", "anyone", "nobody", "admin"],
  TokensManage: ["manages", "anyone", "nobody", "admin"],
  NodesManage: ["manages", "nobody", "nobody", "operator"],
  QueuesRead: ["reads", "nobody", "nobody", "operator"],
  QueuesManage: ["manages", "nobody", "nobody", "operator"],
  PolicyManage: ["manages", "nobody", "nobody", "admin"],
  NotifyManage: ["manages", "nobody", "nobody", "operator"],
  AuditRead: ["reads", "nobody", "nobody", "operator"],
  AuditManage: ["manages", "nobody", "nobody", "admin"],
  WorldRead: ["reads", "nobody", "nobody", "operator"],
  MetricsRead: ["reads", "nobody", "nobody", "viewer"],
  ConfigRead: ["reads", "nobody", "nobody", "operator"],
  Backup: ["manages", "nobody", "nobody", "admin"],
} as const satisfies Record<string, Needs>;

export type Permission = keyof typeof PERMISSIONS;

const ORDER: readonly Role[] = ["viewer", "researcher", "team_lead", "operator", "admin"];

export const ROLE_WORDS: Record<Role, string> = {
  viewer: "viewer",
  researcher: "researcher",
  team_lead: "team lead",
  operator: "operator",
  admin: "admin",
};

export interface Thing {
  /** Whose team it is. Without one: whether there is any team in which one may. */
  team?: string | null | undefined;
  /** Whoever made it; left out, it counts as another's. */
  user?: string | null | undefined;
}

export interface May {
  ok: boolean;
  /** Why not, in words for a tooltip. */
  reason?: string;
}

const YES: May = { ok: true };

function met(least: Least, role: Role | null | undefined): boolean {
  if (least === "anyone") return true;
  if (least === "nobody" || !role) return false;
  return ORDER.indexOf(role) >= ORDER.indexOf(least);
}

function scopeAllows(scope: Scope, kind: Kind): boolean {
  return scope === "all" || kind === "reads" || (scope === "jobs" && kind === "runs");
}

/** Which team lies below which: a role counts in the teams below its own, too. */
export type Parents = ReadonlyMap<string, string>;

/** The highest role in a team or those above it; in any team when none is named. */
export function roleIn(me: Me, team?: string | null, parents?: Parents): Role | undefined {
  const path = new Set<string>();
  for (let t = team; t && !path.has(t); t = parents?.get(t)) path.add(t);
  const roles = me.teams.filter((m) => !team || path.has(m.team)).map((m) => m.role);
  return ORDER.filter((r) => roles.includes(r)).at(-1);
}

export function may(
  me: Me | undefined,
  permission: Permission,
  thing: Thing = {},
  parents?: Parents,
): May {
  if (!me) return { ok: false, reason: "Sign in first." };
  const [kind, own, team, cluster] = PERMISSIONS[permission];
  if (!scopeAllows(me.token.scope, kind)) {
    return {
      ok: false,
      reason:
        me.token.scope === "read"
          ? "You signed in with a token that only reads."
          : "You signed in with a token that only runs jobs.",
    };
  }
  const here = roleIn(me, thing.team, parents);
  const mine = thing.user === me.user;
  if ((mine && met(own, here)) || met(team, here) || met(cluster, me.cluster_role)) return YES;

  const where = thing.team ? ` in ${thing.team}` : "";
  if (team === "nobody" && own === "nobody")
    return { ok: false, reason: `Only ${an(cluster)} of the cluster may do this.` };
  if (team === "nobody") return { ok: false, reason: `Only for your own, or for ${an(cluster)}.` };
  const is = here ? `you are ${an(here)}` : thing.team ? "you have no role there" : "you have none";
  const least = own !== team && !mine ? `${an(team)}${where}, or its owner` : `${an(team)}${where}`;
  return { ok: false, reason: `Takes ${least}; ${is}.` };
}

function an(role: Least): string {
  if (role === "anyone" || role === "nobody") return role;
  const word = ROLE_WORDS[role];
  return `${/^[aeiou]/.test(word) ? "an" : "a"} ${word}`;
}
