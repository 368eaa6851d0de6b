import { useEffect, useRef } from "react";
import { typing } from "@/design/Drawer";
import { store, useStore } from "@/lib/store";

/** What can be done from the keyboard and the palette. */
export interface Action {
  id: string;
  label: string;
  /** `mod+k`, `?`, or two keys one after the other: `g j`. */
  keys?: string;
  /** Heading in the palette and the help. */
  group: string;
  run: () => void;
  /** Why one may not. */
  denied?: string | undefined;
}

const registered = store<readonly Action[]>([]);

/** Offers actions as long as the component is there. They may change from draw to draw. */
export function useActions(actions: readonly Action[]) {
  const latest = useRef(actions);
  latest.current = actions;
  const signature = actions.map((a) => `${a.id}\n${a.label}\n${a.keys}\n${a.denied}`).join("\t");
  useEffect(() => {
    const mine = latest.current.map((a) => ({
      ...a,
      run: () => latest.current.find((l) => l.id === a.id)?.run(),
    }));
    registered.set((all) => [...all, ...mine]);
    return () => registered.set((all) => all.filter((a) => !mine.includes(a as (typeof mine)[0])));
  }, [signature]);
}

export const useAllActions = () => useStore(registered);

const SECOND_KEY_MS = 1200;

function name(e: KeyboardEvent): string {
  const key = e.key.length === 1 ? e.key.toLowerCase() : e.key;
  return e.ctrlKey || e.metaKey ? `mod+${key}` : key;
}

/** Listens for the keys of all actions. Once, in the frame. */
export function useKeyboard() {
  useEffect(() => {
    let before = "";
    let at = 0;
    const onKey = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.altKey || e.isComposing) return;
      const key = name(e);
      // While something is typed, or a dialog asks, only keys with Ctrl are ours.
      if (
        !key.startsWith("mod+") &&
        (typing(e.target) || document.querySelector("[aria-modal=true],[role=alertdialog]"))
      )
        return;
      if (key === "/") {
        const field = document.querySelector<HTMLInputElement>("[data-slash]");
        if (!field) return;
        e.preventDefault();
        field.focus();
        field.select();
        return;
      }
      const two = Date.now() - at < SECOND_KEY_MS ? `${before} ${key}` : "";
      const all = registered.get();
      const hit = (two && all.find((a) => a.keys === two)) || all.find((a) => a.keys === key);
      if (hit && !hit.denied) {
        e.preventDefault();
        before = "";
        hit.run();
        return;
      }
      before = key;
      at = Date.now();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, []);
}
