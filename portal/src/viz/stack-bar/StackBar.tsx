// The parts of a sum in one bar, with a list that names them.

import { useId, useRef, useState } from "react";
import { useSize } from "../common/canvas";
import { Patterns, toneClass } from "../common/parts";
import { type Part, placeParts } from "./layout";
import "./stack-bar.css";

export type { Part } from "./layout";

export interface StackBarProps {
  title: string;
  parts: readonly Part[];
  /** Where the parts are less than the whole. */
  total?: number | undefined;
  format: (value: number) => string;
  onOpen?: ((key: string) => void) | undefined;
  height?: number | undefined;
}

export function StackBar({ title, parts, total = 0, format, onOpen, height = 20 }: StackBarProps) {
  const frame = useRef<HTMLDivElement>(null);
  const { width } = useSize(frame);
  const id = useId();
  const [on, setOn] = useState<string | null>(null);
  const sum =
    Math.max(
      total,
      parts.reduce((s, p) => s + p.value, 0),
    ) || 1;
  const placed = placeParts(parts, total, width, 3);
  return (
    <figure className="viz-frame viz-stack" aria-label={title}>
      <div ref={frame} className="viz-stack-room">
        <svg width={width} height={height} aria-hidden="true">
          <rect className="viz-stack-rest" width={width} height={height} />
          {placed.map(({ part, index, x, width: wide }) => (
            <g
              key={part.key}
              className={`${toneClass(part.tone ?? index)} ${on && on !== part.key ? "viz-stack-off" : ""}`}
              onPointerEnter={() => setOn(part.key)}
              onPointerLeave={() => setOn(null)}
            >
              <rect
                className={part.hatched ? "viz-stack-hollow" : "viz-stack-part"}
                x={x}
                width={Math.max(wide - 1, 1)}
                height={height}
              />
              {part.hatched && (
                <>
                  <Patterns id={`${id}${part.key}`} />
                  <rect
                    fill={`url(#${id}${part.key}-hatch)`}
                    x={x}
                    width={Math.max(wide - 1, 1)}
                    height={height}
                  />
                </>
              )}
            </g>
          ))}
        </svg>
      </div>
      <ul className="viz-stack-list">
        {parts.map((part, i) => {
          const row = (
            <>
              <svg className={toneClass(part.tone ?? i)} width="10" height="10" aria-hidden="true">
                <rect
                  className={part.hatched ? "viz-stack-hollow" : "viz-stack-part"}
                  width="10"
                  height="10"
                />
                {part.hatched && (
                  <rect fill={`url(#${id}${part.key}-hatch)`} width="10" height="10" />
                )}
              </svg>
              <span className="viz-cut" title={part.label}>
                {part.label}
              </span>
              <span className="viz-stack-value">{format(part.value)}</span>
              <span className="viz-stack-percent">{percent(part.value / sum)}</span>
            </>
          );
          return (
            <li
              key={part.key}
              className={on === part.key ? "viz-stack-lit" : ""}
              onPointerEnter={() => setOn(part.key)}
              onPointerLeave={() => setOn(null)}
            >
              {onOpen ? (
                <button type="button" className="viz-stack-row" onClick={() => onOpen(part.key)}>
                  {row}
                </button>
              ) : (
                <div className="viz-stack-row">{row}</div>
              )}
            </li>
          );
        })}
      </ul>
    </figure>
  );
}

function percent(part: number): string {
  if (part > 0 && part < 0.01) return "< 1 %";
  return `${Math.round(part * 100)} %`;
}
