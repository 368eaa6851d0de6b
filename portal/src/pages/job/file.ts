// The few keys of a job file that a page needs. The server writes files flat, a key to a line, so
// that no YAML library has to be carried along.

/** The lines of a top-level key: its own and those that belong to it. */
function find(lines: readonly string[], key: string): { from: number; to: number } | undefined {
  const from = lines.findIndex((line) => line.startsWith(`${key}:`));
  if (from < 0) return undefined;
  let to = from + 1;
  while (to < lines.length && /^([ \t-]|$)/.test(lines[to] ?? "")) to += 1;
  while (to > from + 1 && lines[to - 1] === "") to -= 1;
  return { from, to };
}

/** What stands beside a key, without quotes; nothing where it is left out or written as a block. */
export function keyOf(file: string | undefined, key: string): string | undefined {
  if (!file) return undefined;
  const lines = file.split("\n");
  const at = find(lines, key);
  if (!at) return undefined;
  const value = (lines[at.from] ?? "").slice(key.length + 1).trim();
  if (value === "" || /^[|>]/.test(value)) return undefined;
  return value.replace(/^(["'])(.*)\1$/, "$2");
}

export function hasKey(file: string | undefined, key: string): boolean {
  return Boolean(file && find(file.split("\n"), key));
}

/** The file with a key set, or without it where the value is undefined. The value is YAML. */
export function withKey(file: string, key: string, value: string | undefined): string {
  const lines = file.split("\n");
  const at = find(lines, key);
  const put = value === undefined ? [] : [`${key}: ${value}`];
  if (at) lines.splice(at.from, at.to - at.from, ...put);
  else {
    const name = find(lines, "name");
    lines.splice(name ? name.to : 0, 0, ...put);
  }
  return lines.join("\n");
}

export type Changes = Record<string, string | undefined>;

export function withKeys(file: string, changes: Changes): string {
  return Object.entries(changes).reduce((text, [key, value]) => withKey(text, key, value), file);
}

const UNIT: Record<string, number> = {
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** `90m`, `1h30m`, `1-12:00:00` and `02:30:00` as milliseconds. */
export function lengthOf(text: string | undefined): number | undefined {
  if (!text) return undefined;
  const clock = /^(?:(\d+)-)?(\d+):(\d{2})(?::(\d{2}))?$/.exec(text);
  if (clock) {
    const [d, h, m, s] = clock.slice(1).map((part) => Number(part ?? 0)) as number[];
    return (
      (((d as number) * 24 + (h as number)) * 60 + (m as number)) * 60_000 + (s as number) * 1000
    );
  }
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g)];
  if (parts.length === 0) return undefined;
  let ms = 0;
  for (const [, n, unit] of parts) {
    const size = UNIT[unit as string];
    if (size === undefined) return undefined;
    ms += Number(n) * size;
  }
  return ms;
}
