import { store, useStore } from "@/lib/store";

/** Light, dark or as the system has it. theme-boot.js does the same before the first paint. */
export type Theme = "light" | "dark" | "system";

const KEY = "berth:theme";

function saved(): Theme {
  try {
    const t = localStorage.getItem(KEY);
    if (t === "light" || t === "dark") return t;
  } catch {}
  return "system";
}

const theme = store<Theme>(saved());
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function apply() {
  const t = theme.get();
  document.documentElement.dataset.theme = t === "system" ? (dark.matches ? "dark" : "light") : t;
}

dark.addEventListener("change", apply);
theme.subscribe(apply);

export function setTheme(t: Theme) {
  try {
    if (t === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, t);
  } catch {}
  theme.set(t);
}

export const useTheme = () => useStore(theme);

/** The other one than what is seen now. */
export function flipTheme() {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}
