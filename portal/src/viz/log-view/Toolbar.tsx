// Search, filters and switches above the log.

import type { KeyboardEvent, RefObject } from "react";

export interface RankChip {
  id: string;
  label: string;
  on: boolean;
}

export interface ToolbarProps {
  input: RefObject<HTMLInputElement | null>;
  text: string;
  onText: (text: string) => void;
  regex: boolean;
  onRegex: () => void;
  matchCase: boolean;
  onMatchCase: () => void;
  /** "3 of 214", "no lines", an error. */
  count: string;
  failed: boolean;
  found: boolean;
  onStep: (by: 1 | -1) => void;
  onlyMatches: boolean;
  onOnlyMatches: () => void;
  ranks: readonly RankChip[];
  onRank: ((id: string) => void) | undefined;
  timed: boolean;
  times: boolean;
  onTimes: () => void;
  wrap: boolean;
  onWrap: () => void;
  live: boolean;
  following: boolean;
  onFollow: () => void;
  onCopy: (withTimes: boolean) => void;
  picked: number;
  said: string;
}

export function Toolbar(p: ToolbarProps) {
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Enter") {
      event.preventDefault();
      p.onStep(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && p.text) {
      event.stopPropagation();
      p.onText("");
    }
  };
  return (
    <div className="viz-log-tools">
      <div className="viz-log-find" role="search">
        <input
          ref={p.input}
          className="viz-log-input"
          type="search"
          placeholder="Find in these lines"
          aria-label="Find in these lines"
          aria-invalid={p.failed}
          spellCheck={false}
          autoComplete="off"
          value={p.text}
          onChange={(e) => p.onText(e.target.value)}
          onKeyDown={keys}
        />
        <Toggle on={p.matchCase} onClick={p.onMatchCase} label="Match case">
          Aa
        </Toggle>
        <Toggle on={p.regex} onClick={p.onRegex} label="Regular expression">
          .*
        </Toggle>
        {p.text && (
          <>
            <Plain onClick={() => p.onStep(-1)} label="Previous match" off={!p.found}>
              ↑
            </Plain>
            <Plain onClick={() => p.onStep(1)} label="Next match" off={!p.found}>
              ↓
            </Plain>
            <Toggle on={p.onlyMatches} onClick={p.onOnlyMatches} label="Show only matching lines">
              Only matches
            </Toggle>
          </>
        )}
        <span className={`viz-log-count ${p.failed ? "viz-log-failed" : ""}`} aria-live="polite">
          {p.count}
        </span>
      </div>
      {p.ranks.length > 0 && (
        <div className="viz-log-chips" role="group" aria-label="Ranks">
          {p.ranks.map((chip) => (
            <button
              key={chip.id}
              type="button"
              className="viz-button"
              aria-pressed={chip.on}
              onClick={() => p.onRank?.(chip.id)}
            >
              {chip.label}
            </button>
          ))}
        </div>
      )}
      <div className="viz-log-switches">
        <span className="viz-log-said" aria-live="polite">
          {p.said}
        </span>
        {p.timed && (
          <Toggle on={p.times} onClick={p.onTimes} label="Show times">
            Times
          </Toggle>
        )}
        <Toggle on={p.wrap} onClick={p.onWrap} label="Wrap long lines">
          Wrap
        </Toggle>
        {p.live && (
          <Toggle on={p.following} onClick={p.onFollow} label="Follow the end of the log">
            Follow
          </Toggle>
        )}
        <Plain
          onClick={() => p.onCopy(false)}
          label={p.picked ? `Copy ${p.picked} lines` : "Copy the log"}
        >
          {p.picked ? `Copy ${p.picked.toLocaleString("en-US")} lines` : "Copy"}
        </Plain>
        {p.timed && (
          <Plain onClick={() => p.onCopy(true)} label="Copy + times">
            Copy + times
          </Plain>
        )}
      </div>
    </div>
  );
}

interface ButtonProps {
  onClick: () => void;
  label: string;
  children: string;
}

function Toggle({ on, onClick, label, children }: ButtonProps & { on: boolean }) {
  return (
    <button
      type="button"
      className="viz-button"
      aria-pressed={on}
      aria-label={label}
      title={label}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

function Plain({ onClick, label, children, off }: ButtonProps & { off?: boolean }) {
  return (
    <button
      type="button"
      className="viz-button"
      aria-label={label}
      title={label}
      disabled={off}
      onClick={onClick}
    >
      {children}
    </button>
  );
}
