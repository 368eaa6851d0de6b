// Lines for the clipboard, with and without their times.

import { strip } from "./ansi";
import type { LogStore } from "./store";

const MOST_LINES = 200_000;

export interface Copied {
  text: string;
  lines: number;
  /** Not all of it: only the last lines. */
  cut: boolean;
}

export function copyText(
  store: LogStore,
  range: { from: number; to: number },
  withTimes: boolean,
): Copied {
  const from = Math.max(range.from, store.first);
  const to = Math.min(range.to, store.end);
  const start = Math.max(from, to - MOST_LINES);
  const text = store.text(start, to, (line) => {
    const plain = strip(line.text);
    const rank = line.rank === undefined ? "" : `r${line.rank} `;
    if (!withTimes || line.at === undefined) return `${withTimes ? rank : ""}${plain}`;
    return `${new Date(line.at).toISOString()} ${rank}${plain}`;
  });
  return { text, lines: Math.max(0, to - start), cut: start > from };
}

/** Copies, and says what was copied. */
export async function copyWords(copied: Copied): Promise<string> {
  if (copied.lines === 0) return "Nothing to copy";
  if (!(await write(copied.text))) return "The browser did not let us copy";
  const n = copied.lines.toLocaleString("en-US");
  if (copied.cut) return `Copied the last ${n} lines`;
  return copied.lines === 1 ? "Copied 1 line" : `Copied ${n} lines`;
}

async function write(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Without TLS there is no clipboard but this one.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "viz-hidden";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
