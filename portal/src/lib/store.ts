import { useSyncExternalStore } from "react";

/** A value outside React that components can follow. */
export interface Store<T> {
  get(): T;
  set(next: T | ((old: T) => T)): void;
  subscribe(cb: () => void): () => void;
}

export function store<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      const made = typeof next === "function" ? (next as (old: T) => T)(value) : next;
      if (Object.is(made, value)) return;
      value = made;
      for (const cb of listeners) cb();
    },
    subscribe(cb) {
      listeners.add(cb);
      return () => listeners.delete(cb);
    },
  };
}

export function useStore<T>(s: Store<T>): T {
  return useSyncExternalStore(s.subscribe, s.get);
}
