import type { ReactNode } from "react";

export interface Column<T> {
  id: string;
  /** Words in the head, and in the column picker. */
  header: string;
  cell: (row: T) => ReactNode;
  /** For CSV. Without it the column is left out there. */
  value?: (row: T) => string | number | boolean | null | undefined;
  /** Least width in pixels. */
  width: number;
  /** Its part of the room that is left; 0, the default, keeps the width. */
  grow?: number;
  align?: "right";
  /** The key that the address and the API know. */
  sort?: string;
  /** Which way the first click sorts; numbers and times read better from the top. */
  sortFirst?: "asc" | "desc";
  /** Not shown until chosen. */
  hidden?: boolean;
  /** Hidden where the columns do not fit: 1 first, then 2. A user who chooses the column keeps it. */
  yields?: number;
  /** Cannot be hidden: what names the row. */
  fixed?: boolean;
  /** Its place where there is no room for columns: first line, its right end, second line, nowhere. */
  narrow?: "title" | "end" | "meta" | "hide";
  /** Explains the head. */
  hint?: string;
}

/** The columns that fit into `width`. Those that yield are left out first, in their order. */
export function fitting<T>(
  columns: readonly Column<T>[],
  width: number,
  chosen: Readonly<Record<string, boolean>> = {},
): readonly Column<T>[] {
  const yielding = columns
    .filter((c) => c.yields !== undefined && !chosen[c.id])
    .sort((a, b) => (a.yields ?? 0) - (b.yields ?? 0));
  let least = columns.reduce((sum, c) => sum + c.width, 0);
  const out = new Set<string>();
  for (const c of yielding) {
    if (least <= width) break;
    out.add(c.id);
    least -= c.width;
  }
  return out.size > 0 ? columns.filter((c) => !out.has(c.id)) : columns;
}

/** Whether a cell has something to say: a dash says nothing where no column has a head. */
export function says<T>(column: Column<T>, row: T): boolean {
  return !column.value || (column.value(row) ?? "") !== "";
}

/** `-cost` and `cost`, as the address has them. */
export function sortOf(sort: string | undefined): { key: string; desc: boolean } | undefined {
  if (!sort) return undefined;
  return sort.startsWith("-") ? { key: sort.slice(1), desc: true } : { key: sort, desc: false };
}

/** A click on a head: its own way first, then the other, then none. */
export function nextSort<T>(column: Column<T>, sort: string | undefined): string | undefined {
  const key = column.sort;
  if (!key) return sort;
  const first = column.sortFirst === "desc" ? `-${key}` : key;
  const second = column.sortFirst === "desc" ? key : `-${key}`;
  if (sort === first) return second;
  if (sort === second) return undefined;
  return first;
}

/** For rows that are all here. Lists of the server are sorted there. */
export function sorted<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  sort: string | undefined,
): T[] {
  const s = sortOf(sort);
  const column = s && columns.find((c) => c.sort === s.key);
  if (!s || !column?.value) return [...rows];
  const value = column.value;
  const sign = s.desc ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = value(a);
    const y = value(b);
    // What has no value comes last either way.
    if (x === y) return 0;
    if (x === null || x === undefined || x === "") return 1;
    if (y === null || y === undefined || y === "") return -1;
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    return sign * String(x).localeCompare(String(y), "en", { numeric: true });
  });
}

/** Ids from one row to another, for a selection with Shift. */
export function between(ids: readonly string[], from: string, to: string): string[] {
  const a = ids.indexOf(from);
  const b = ids.indexOf(to);
  if (a < 0 || b < 0) return [to];
  return ids.slice(Math.min(a, b), Math.max(a, b) + 1);
}
