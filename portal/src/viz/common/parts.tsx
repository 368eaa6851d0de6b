// Small parts that several charts share.

import { memo, type ReactNode, useLayoutEffect, useRef } from "react";
import "./viz.css";

export interface TableProps {
  caption: string;
  head: readonly string[];
  rows: readonly (readonly string[])[];
  /** Said when there are more rows than the table holds. */
  note?: string | undefined;
}

/** What a chart shows, for those who cannot see it. */
export const HiddenTable = memo(function HiddenTable({ caption, head, rows, note }: TableProps) {
  return (
    <div className="viz-hidden">
      <table>
        <caption>{note ? `${caption}. ${note}` : caption}</caption>
        <thead>
          <tr>
            {head.map((text, i) => (
              <th key={`${i}-${text}`} scope="col">
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, r) => (
            <tr key={`${r}-${row[0]}`}>
              {row.map((text, i) =>
                i === 0 ? (
                  <th key="head" scope="row">
                    {text}
                  </th>
                ) : (
                  <td key={head[i] ?? i}>{text}</td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

/** What the keyboard cursor stands on, said politely. */
export function Readout({ text }: { text: string }) {
  return (
    <div className="viz-hidden" aria-live="polite" aria-atomic="true">
      {text}
    </div>
  );
}

export interface TipProps {
  x: number;
  y: number;
  children: ReactNode;
}

/** Floats beside a point of its positioned parent, always inside the window. */
export function Tip({ x, y, children }: TipProps) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tip = ref.current;
    const parent = tip?.offsetParent;
    if (!tip || !parent) return;
    const box = parent.getBoundingClientRect();
    const room = document.documentElement.clientWidth;
    const tall = document.documentElement.clientHeight;
    let left = x + 14;
    let top = y + 14;
    if (box.left + left + tip.offsetWidth > room - 8) left = x - tip.offsetWidth - 14;
    if (box.left + left < 8) left = 8 - box.left;
    if (box.top + top + tip.offsetHeight > tall - 8) top = y - tip.offsetHeight - 14;
    if (box.top + top < 8) top = 8 - box.top;
    tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  });
  return (
    <div ref={ref} className="viz-tip" role="presentation">
      {children}
    </div>
  );
}

export interface SwatchProps {
  tone: number;
  /** Dashes for what is not measured. */
  dashed?: boolean;
}

export function toneClass(tone: number): string {
  return `viz-tone-${(((tone % 8) + 8) % 8) + 1}`;
}

export function Swatch({ tone, dashed }: SwatchProps) {
  return (
    <svg className={`viz-swatch ${toneClass(tone)}`} width="12" height="8" aria-hidden="true">
      <line x1="0" y1="4" x2="12" y2="4" strokeDasharray={dashed ? "3 2" : undefined} />
    </svg>
  );
}

/** SVG patterns for series after the eighth, borrowed parts and no data. */
export function Patterns({ id }: { id: string }) {
  return (
    <defs>
      <pattern id={`${id}-hatch`} width="5" height="5" patternUnits="userSpaceOnUse">
        <path d="M-1,1 l2,-2 M0,5 l5,-5 M4,6 l2,-2" className="viz-pattern-line" />
      </pattern>
      <pattern id={`${id}-dots`} width="4" height="4" patternUnits="userSpaceOnUse">
        <circle cx="1" cy="1" r="0.9" className="viz-pattern-dot" />
        <circle cx="3" cy="3" r="0.9" className="viz-pattern-dot" />
      </pattern>
    </defs>
  );
}
