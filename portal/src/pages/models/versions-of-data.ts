// The names and the order of versions of data. Pure.

import type { components } from "@/api/schema";

export type DataVersion = components["schemas"]["DataVersion"];

/** Such as `c4@v3`. */
export function dataName(of: { name: string; version: number }): string {
  return `${of.name}@v${of.version}`;
}

export function parentOf(of: DataVersion): string | undefined {
  return of.parent == null ? undefined : dataName({ name: of.name, version: of.parent });
}

export function fits(of: DataVersion, text: string | undefined): boolean {
  const words = (text ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const all = `${dataName(of)} ${of.by} ${of.note} ${of.hash}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

/** Groups the versions by name, each from the newest to the oldest. */
export function byName(all: readonly DataVersion[]): DataVersion[] {
  return [...all].sort((a, b) =>
    a.name === b.name ? b.version - a.version : a.name.localeCompare(b.name, "en"),
  );
}
