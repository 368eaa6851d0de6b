// What canvases paint with: the tokens of the current theme.

import { useSyncExternalStore } from "react";
import { onThemeChange, type StateToken, type Tokens, tokens } from "../../design/tokens";

export type Ink = Tokens;
export type StateName = StateToken;

/** The tokens of the current theme. The object is the same until the theme changes. */
export function useInk(): Ink {
  return useSyncExternalStore(onThemeChange, tokens);
}

/** The colour of a series; after the eighth the hues repeat, and patterns tell them apart. */
export function seriesColour(ink: Ink, index: number): string {
  return ink.series[((index % 8) + 8) % 8] ?? ink.accent;
}
