import type { ReactNode } from "react";
import { cx } from "@/lib/cx";
import type { StateToken } from "./tokens";

type Glyph =
  | "full"
  | "half"
  | "ring"
  | "diamond"
  | "cross"
  | "check"
  | "bars"
  | "down"
  | "slash"
  | "dash";

/** Every state that anything can be in: colour, glyph and word, so that none is told by colour alone. */
const STATES: Record<string, { token: StateToken; glyph: Glyph; word: string }> = {
  pending: { token: "waiting", glyph: "ring", word: "Waiting" },
  waiting: { token: "waiting", glyph: "ring", word: "Waiting" },
  held: { token: "idle", glyph: "bars", word: "On hold" },
  starting: { token: "starting", glyph: "half", word: "Starting" },
  running: { token: "running", glyph: "full", word: "Running" },
  saving: { token: "saving", glyph: "down", word: "Saving" },
  stopping: { token: "saving", glyph: "half", word: "Stopping" },
  preempted: { token: "preempted", glyph: "diamond", word: "Preempted" },
  paused: { token: "idle", glyph: "bars", word: "Paused" },
  done: { token: "done", glyph: "check", word: "Done" },
  ended: { token: "done", glyph: "check", word: "Ended" },
  failed: { token: "failed", glyph: "cross", word: "Failed" },
  cancelled: { token: "idle", glyph: "slash", word: "Cancelled" },
  promised: { token: "idle", glyph: "ring", word: "Promised" },
  // Nodes and GPUs
  ready: { token: "running", glyph: "full", word: "Ready" },
  free: { token: "idle", glyph: "ring", word: "Free" },
  cordoned: { token: "waiting", glyph: "slash", word: "Cordoned" },
  draining: { token: "saving", glyph: "down", word: "Draining" },
  troubled: { token: "failed", glyph: "diamond", word: "In trouble" },
  leaving: { token: "preempted", glyph: "diamond", word: "Leaving" },
  idle: { token: "idle", glyph: "dash", word: "Idle" },
  // Tokens, schedules, checks
  active: { token: "running", glyph: "full", word: "Active" },
  expired: { token: "idle", glyph: "dash", word: "Expired" },
  revoked: { token: "idle", glyph: "slash", word: "Revoked" },
  ok: { token: "running", glyph: "check", word: "OK" },
  refused: { token: "failed", glyph: "cross", word: "Refused" },
};

const TEXT: Record<StateToken, string> = {
  running: "text-running",
  waiting: "text-waiting",
  starting: "text-starting",
  saving: "text-saving",
  preempted: "text-preempted",
  failed: "text-failed",
  done: "text-done",
  idle: "text-idle",
};
const SOFT: Record<StateToken, string> = {
  running: "bg-running-soft",
  waiting: "bg-waiting-soft",
  starting: "bg-starting-soft",
  saving: "bg-saving-soft",
  preempted: "bg-preempted-soft",
  failed: "bg-failed-soft",
  done: "bg-done-soft",
  idle: "bg-idle-soft",
};

export function stateOf(state: string) {
  return STATES[state] ?? { token: "idle" as const, glyph: "dash" as const, word: state };
}

/** The glyph alone, where the word stands beside it anyway. */
export function StateGlyph({ state, size = 10 }: { state: string; size?: number }) {
  const { token, glyph } = stateOf(state);
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 10 10"
      className={cx("shrink-0", TEXT[token])}
      aria-hidden="true"
    >
      {GLYPHS[glyph]}
    </svg>
  );
}

/** Glyph, word and colour. `soft` puts it on a tinted ground, for headers and cards. */
export function StateBadge({
  state,
  word,
  soft,
  children,
}: {
  state: string;
  /** Instead of the state's own word. */
  word?: string;
  soft?: boolean;
  /** What follows the word in lighter weight: since when, the attempt. */
  children?: ReactNode;
}) {
  const s = stateOf(state);
  return (
    <span
      className={cx(
        "inline-flex items-center gap-1.5 whitespace-nowrap",
        TEXT[s.token],
        soft && "h-5 rounded-sm px-1.5 text-12",
        soft && SOFT[s.token],
      )}
    >
      <StateGlyph state={state} />
      <span className={soft ? "font-medium" : undefined}>{word ?? s.word}</span>
      {children && <span className="font-normal text-muted">{children}</span>}
    </span>
  );
}

const line = {
  fill: "none",
  stroke: "currentColor",
  strokeWidth: 1.6,
  strokeLinecap: "round",
} as const;
const GLYPHS: Record<Glyph, ReactNode> = {
  full: <circle cx="5" cy="5" r="4" fill="currentColor" />,
  half: (
    <>
      <circle cx="5" cy="5" r="3.3" {...line} strokeWidth="1.4" />
      <path d="M5 1.7a3.3 3.3 0 0 0 0 6.6z" fill="currentColor" />
    </>
  ),
  ring: <circle cx="5" cy="5" r="3.3" {...line} strokeWidth="1.4" />,
  diamond: <path d="M5 .6 9.4 5 5 9.4.6 5z" fill="currentColor" />,
  cross: <path d="M2 2l6 6M8 2 2 8" {...line} />,
  check: <path d="M1.5 5.4 4 7.8 8.5 2.6" {...line} strokeLinejoin="round" />,
  bars: <path d="M3.2 2v6M6.8 2v6" {...line} strokeWidth="2" strokeLinecap="butt" />,
  down: (
    <path
      d="M5 1.2v5M2.6 4.2 5 6.6l2.4-2.4M1.8 9h6.4"
      {...line}
      strokeWidth="1.4"
      strokeLinejoin="round"
    />
  ),
  slash: (
    <>
      <circle cx="5" cy="5" r="3.6" {...line} strokeWidth="1.3" />
      <path d="M2.6 7.4l4.8-4.8" {...line} strokeWidth="1.3" />
    </>
  ),
  dash: <path d="M2 5h6" {...line} />,
};
