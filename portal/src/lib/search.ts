/**
 * Search parameters are plain `key=value` text, so that an address can be read, written by hand and
 * shared. Pages turn them into their own types with the helpers below; what makes no sense is dropped.
 */
export type Raw = Record<string, unknown>;

export function parseSearch(text: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(text));
}

export function stringifySearch(search: Raw): string {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(search)) {
    if (value === undefined || value === null || value === "" || value === false) continue;
    if (Array.isArray(value)) {
      if (value.length > 0) out.set(key, value.join(","));
    } else out.set(key, String(value));
  }
  // Commas and colons may stand as they are, and read better so.
  const text = out.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
  return text ? `?${text}` : "";
}

export function str(raw: Raw, key: string, most = 500): string | undefined {
  const value = raw[key];
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value.slice(0, most) : undefined;
}

export function list(raw: Raw, key: string, most = 500): string[] | undefined {
  const value = raw[key];
  const all = Array.isArray(value) ? value.map(String) : str(raw, key, most)?.split(",");
  const out = all?.map((s) => s.trim()).filter(Boolean);
  return out && out.length > 0 ? out : undefined;
}

export function num(raw: Raw, key: string): number | undefined {
  const text = str(raw, key);
  if (text === undefined) return undefined;
  const n = Number(text);
  return Number.isFinite(n) ? n : undefined;
}

export function flag(raw: Raw, key: string): true | undefined {
  return raw[key] === true || raw[key] === "true" || raw[key] === "1" ? true : undefined;
}

export function oneOf<T extends string>(
  raw: Raw,
  key: string,
  allowed: readonly T[],
): T | undefined {
  const value = str(raw, key);
  return allowed.find((a) => a === value);
}
