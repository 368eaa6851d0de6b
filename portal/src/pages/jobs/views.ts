// Named filters of the list. Pure; they are kept per user in the browser.

import { stringifySearch } from "@/lib/search";
import type { Filtered } from "./filters";

export interface View {
  name: string;
  search: Filtered;
}

/** Those that everybody has. */
export function builtIn(me: string | undefined): View[] {
  return [
    { name: "All jobs", search: {} },
    ...(me ? [{ name: "Mine, not ended", search: { user: me, state: ["active"] } }] : []),
    { name: "Waiting, soonest first", search: { state: ["pending"], sort: "eta" as const } },
    {
      name: "Running, most expensive first",
      search: { state: ["running"], sort: "-cost" as const },
    },
    { name: "Failed since yesterday", search: { state: ["failed"], since: "1d" } },
  ];
}

const key = (search: Filtered) => stringifySearch({ ...kept(search) });

/** What a view keeps: filters and order, and not which drawer is open. */
export function kept(search: Filtered): Filtered {
  const { q, state, user, team, project, experiment, since, sort } = search;
  const out: Filtered = { q, state, user, team, project, experiment, since, sort };
  for (const k of Object.keys(out) as (keyof Filtered)[]) if (out[k] === undefined) delete out[k];
  return out;
}

/** The view that is seen now, if it is one. */
export function current(views: readonly View[], search: Filtered): View | undefined {
  const now = key(search);
  return views.find((v) => key(v.search) === now);
}

export function saved(views: readonly View[], name: string, search: Filtered): View[] {
  const view = { name: name.trim().slice(0, 60), search: kept(search) };
  if (view.name === "") return [...views];
  return [...views.filter((v) => v.name !== view.name), view].sort((a, b) =>
    a.name.localeCompare(b.name, "en", { numeric: true }),
  );
}

export function without(views: readonly View[], name: string): View[] {
  return views.filter((v) => v.name !== name);
}
