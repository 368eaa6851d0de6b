// One line of the log. Text is only ever text; links are elements, never markup.

import { type CSSProperties, memo } from "react";
import { cssOf, mix, type Rgb, readable, rgbOf } from "../common/colour";
import type { Ink } from "../common/theme";
import type { Style } from "./ansi";
import { type Piece, pieces } from "./pieces";

export interface RowProps {
  number: number;
  text: string;
  at: number | undefined;
  rank: number | undefined;
  expression: RegExp | null;
  current: boolean;
  picked: boolean;
  times: boolean;
  ranks: boolean;
  /** Digits of the largest line number: the numbers end at one edge. */
  digits: number;
  ink: Ink;
}

export const Row = memo(function Row(p: RowProps) {
  const kind = `viz-log-row${p.current ? " viz-log-current" : ""}${p.picked ? " viz-log-picked" : ""}`;
  return (
    <div className={kind}>
      <span className="viz-log-gutter" data-line={p.number}>
        {String(p.number + 1).padStart(p.digits)}
      </span>
      {p.times && <span className="viz-log-time">{p.at === undefined ? "" : clock(p.at)}</span>}
      {p.ranks && <span className="viz-log-rank">{p.rank === undefined ? "" : `r${p.rank}`}</span>}
      <span className="viz-log-text">
        {pieces(p.text, p.expression).map((run, i) =>
          run.href === null ? (
            run.pieces.map((piece, k) => <Part key={`${i}-${k}`} piece={piece} ink={p.ink} />)
          ) : (
            <a key={i} href={run.href} target="_blank" rel="noopener noreferrer">
              {run.pieces.map((piece, k) => (
                <Part key={k} piece={piece} ink={p.ink} />
              ))}
            </a>
          ),
        )}
      </span>
    </div>
  );
});

function Part({ piece, ink }: { piece: Piece; ink: Ink }) {
  if (!piece.style && !piece.mark) return piece.text;
  const look = piece.style ? lookOf(piece.style, ink) : null;
  if (piece.mark) {
    return (
      <mark className={look?.className} style={look?.style}>
        {piece.text}
      </mark>
    );
  }
  return (
    <span className={look?.className} style={look?.style}>
      {piece.text}
    </span>
  );
}

function lookOf(given: Style, ink: Ink): { className: string; style: CSSProperties | undefined } {
  const classes: string[] = [];
  const style: CSSProperties = {};
  let { fore, back } = given;
  if (given.inverse) {
    [fore, back] = [back, fore];
    if (!back) classes.push("viz-ansi-inverse");
  }
  if (given.bold) classes.push("viz-ansi-bold");
  if (given.dim) classes.push("viz-ansi-dim");
  if (given.italic) classes.push("viz-ansi-italic");
  if (given.underline) classes.push("viz-ansi-underline");
  if (given.strike) classes.push("viz-ansi-strike");
  // Grounds are tints of the page, so that whatever stands on them can be read.
  let ground: Rgb = rgbOf(ink.surface);
  if (back?.kind === "named") classes.push(`viz-ansi-back viz-ansi-b${back.index % 8}`);
  else if (back) {
    ground = mix(ground, back.rgb, 0.28);
    style.backgroundColor = cssOf(ground);
  }
  if (fore?.kind === "named" && !back) classes.push(`viz-ansi-f${fore.index}`);
  else if (fore?.kind === "rgb" && back?.kind !== "named")
    style.color = cssOf(readable(fore.rgb, ground));
  else if (back?.kind === "rgb") style.color = cssOf(readable(rgbOf(ink.text), ground));
  return {
    className: classes.join(" "),
    style: style.color || style.backgroundColor ? style : undefined,
  };
}

export function clock(at: number): string {
  const d = new Date(at);
  const two = (n: number) => String(n).padStart(2, "0");
  const ms = String(d.getMilliseconds()).padStart(3, "0");
  return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${ms}`;
}
