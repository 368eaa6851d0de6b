import { useSyncExternalStore } from "react";

/** One clock for the whole page: it ticks once a second while somebody looks, and stands while hidden. */
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;
const listeners = new Set<() => void>();

function tick() {
  if (document.hidden) return;
  now = Date.now();
  for (const cb of listeners) cb();
}

function subscribe(cb: () => void) {
  listeners.add(cb);
  if (!timer) {
    now = Date.now();
    timer = setInterval(tick, 1000);
    document.addEventListener("visibilitychange", tick);
  }
  return () => {
    listeners.delete(cb);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
    document.removeEventListener("visibilitychange", tick);
  };
}

/** The time, rounded to `step`: a component is drawn again only when its own step has passed. */
export function useNow(step = 1000): number {
  return useSyncExternalStore(subscribe, () => now - (now % step));
}
