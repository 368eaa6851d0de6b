import { Coins, House, LayoutGrid, ListOrdered, Rows3, Settings2 } from "lucide-react";

/** The pages of the rail. A page joins when it exists; there are no dead links. */
export const NAV = [
  { to: "/", label: "Home", icon: House, keys: "g h" },
  { to: "/jobs", label: "Jobs", icon: Rows3, keys: "g j" },
  { to: "/queue", label: "Queue", icon: ListOrdered, keys: "g q" },
  { to: "/cluster", label: "Cluster", icon: LayoutGrid, keys: "g c" },
  { to: "/costs", label: "Costs", icon: Coins, keys: "g o" },
  { to: "/admin", label: "Admin", icon: Settings2, keys: "g a" },
] as const;

export function isAt(to: string, path: string): boolean {
  return to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
}
