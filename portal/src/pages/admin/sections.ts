import type { Permission } from "@/api/rights";

/** The parts of the administration, in the order of the list at the left. */
export const SECTIONS = [
  { id: "teams", label: "Teams", permission: "ClusterRead" },
  { id: "people", label: "People", permission: "UsersRead" },
  { id: "tokens", label: "Tokens", permission: "TokensRead" },
  { id: "sessions", label: "Sessions", permission: "TokensRead" },
  { id: "secrets", label: "Secrets", permission: "SecretsRead" },
  { id: "policy", label: "Policy and queues", permission: "ClusterRead" },
  { id: "schedules", label: "Schedules", permission: "SchedulesRead" },
  { id: "audit", label: "Audit", permission: "AuditRead" },
  { id: "health", label: "Health", permission: "ClusterRead" },
] as const satisfies readonly { id: string; label: string; permission: Permission }[];

export type SectionId = (typeof SECTIONS)[number]["id"];
