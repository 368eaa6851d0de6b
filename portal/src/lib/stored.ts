import { useCallback, useSyncExternalStore } from "react";

/** Settings of one user in this browser: columns, saved views, density. Small things only. */
let user = "";
const listeners = new Set<() => void>();
const parsed = new Map<string, { text: string | null; value: unknown }>();

export function setStoredUser(name: string) {
  if (name === user) return;
  user = name;
  for (const cb of listeners) cb();
}

const address = (key: string) => `berth:${user}:${key}`;

function read<T>(key: string, fallback: T): T {
  const at = address(key);
  let text: string | null = null;
  try {
    text = localStorage.getItem(at);
  } catch {}
  const known = parsed.get(at);
  if (known && known.text === text) return known.value as T;
  let value: unknown = fallback;
  if (text !== null) {
    try {
      value = JSON.parse(text);
    } catch {}
  }
  parsed.set(at, { text, value });
  return value as T;
}

export function useStored<T>(key: string, fallback: T): [T, (value: T) => void] {
  const value = useSyncExternalStore(
    (cb) => {
      listeners.add(cb);
      window.addEventListener("storage", cb);
      return () => {
        listeners.delete(cb);
        window.removeEventListener("storage", cb);
      };
    },
    () => read(key, fallback),
  );
  const set = useCallback(
    (next: T) => {
      try {
        localStorage.setItem(address(key), JSON.stringify(next));
      } catch {}
      for (const cb of listeners) cb();
    },
    [key],
  );
  return [value, set];
}
