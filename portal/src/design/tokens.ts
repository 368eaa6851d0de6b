/** The tokens of tokens.css as values, for what is drawn on a canvas. */

export const STATES = [
  "running",
  "waiting",
  "starting",
  "saving",
  "preempted",
  "failed",
  "done",
  "idle",
] as const;
export type StateToken = (typeof STATES)[number];

export interface Tokens {
  theme: "light" | "dark";
  bg: string;
  surface: string;
  surface2: string;
  raised: string;
  line: string;
  lineStrong: string;
  text: string;
  textMuted: string;
  textFaint: string;
  accent: string;
  accentText: string;
  accentSoft: string;
  focus: string;
  good: string;
  warn: string;
  bad: string;
  state: Record<StateToken, string>;
  stateSoft: Record<StateToken, string>;
  /** Eight hues in a fixed order; a ninth series starts anew with a pattern. */
  series: readonly string[];
  /** Nine steps, least to most. */
  heat: readonly string[];
  fontSans: string;
  fontMono: string;
}

let cached: Tokens | undefined;
const listeners = new Set<(t: Tokens) => void>();

function read(): Tokens {
  const root = document.documentElement;
  const style = getComputedStyle(root);
  const get = (name: string) => style.getPropertyValue(name).trim();
  const states = (suffix: string) =>
    Object.fromEntries(STATES.map((s) => [s, get(`--state-${s}${suffix}`)])) as Record<
      StateToken,
      string
    >;
  return {
    theme: root.dataset.theme === "dark" ? "dark" : "light",
    bg: get("--bg"),
    surface: get("--surface"),
    surface2: get("--surface-2"),
    raised: get("--raised"),
    line: get("--line"),
    lineStrong: get("--line-strong"),
    text: get("--text"),
    textMuted: get("--text-muted"),
    textFaint: get("--text-faint"),
    accent: get("--accent"),
    accentText: get("--accent-text"),
    accentSoft: get("--accent-soft"),
    focus: get("--focus"),
    good: get("--good"),
    warn: get("--warn"),
    bad: get("--bad"),
    state: states(""),
    stateSoft: states("-soft"),
    series: Array.from({ length: 8 }, (_, i) => get(`--series-${i + 1}`)),
    heat: Array.from({ length: 9 }, (_, i) => get(`--heat-${i}`)),
    fontSans: get("--font-sans"),
    fontMono: get("--font-mono"),
  };
}

/** Values of the theme that is shown now. The same object until the theme changes. */
export function tokens(): Tokens {
  cached ??= read();
  return cached;
}

/** Calls back with the new values after each change of theme; returns how to stop. */
export function onThemeChange(cb: (t: Tokens) => void): () => void {
  listeners.add(cb);
  return () => listeners.delete(cb);
}

if (typeof document !== "undefined") {
  new MutationObserver(() => {
    cached = undefined;
    const now = tokens();
    for (const cb of listeners) cb(now);
  }).observe(document.documentElement, { attributeFilter: ["data-theme"] });
}
