import {
  Box,
  Coins,
  FlaskConical,
  House,
  LayoutGrid,
  ListOrdered,
  Rows3,
  Settings2,
  Waypoints,
} from "lucide-react";

/** The pages of the rail. A page joins when it exists; there are no dead links. */
export const NAV = [
  { to: "/", label: "Home", icon: House, keys: "g h" },
  { to: "/jobs", label: "Jobs", icon: Rows3, keys: "g j" },
  { to: "/queue", label: "Queue", icon: ListOrdered, keys: "g q" },
  { to: "/cluster", label: "Cluster", icon: LayoutGrid, keys: "g c" },
  { to: "/costs", label: "Costs", icon: Coins, keys: "g o" },
  { to: "/experiments", label: "Experiments", icon: FlaskConical, keys: "g e" },
  { to: "/models", label: "Models", icon: Box, keys: "g m" },
  { to: "/lineage", label: "Lineage", icon: Waypoints, keys: "g l" },
  { to: "/admin", label: "Admin", icon: Settings2, keys: "g a" },
] as const;

export function isAt(to: string, path: string): boolean {
  // The address of a run does not contain its experiment.
  if (to === "/experiments" && path.startsWith("/runs/")) return true;
  return to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
}
