// Values by name, largest first as given: what pies are used for elsewhere.

import { toneClass } from "../common/parts";
import "./bar-list.css";

export interface BarItem {
  key: string;
  label: string;
  value: number;
  /** Under the label, quieter. */
  note?: string | undefined;
}

export interface BarListProps {
  title: string;
  items: readonly BarItem[];
  format: (value: number) => string;
  /** What a full bar stands for; the largest value where left out. */
  most?: number | undefined;
  tone?: number | undefined;
  onOpen?: ((key: string) => void) | undefined;
}

export function BarList({ title, items, format, most, tone = 0, onOpen }: BarListProps) {
  const top = most ?? (Math.max(0, ...items.map((i) => i.value)) || 1);
  return (
    <ul className={`viz-bars ${toneClass(tone)}`} aria-label={title}>
      {items.map((item) => {
        const row = (
          <>
            <span className="viz-bars-label">
              <span className="viz-cut" title={item.label}>
                {item.label}
              </span>
              {item.note && <span className="viz-bars-note viz-cut">{item.note}</span>}
            </span>
            <svg className="viz-bars-bar" width="100%" height="8" aria-hidden="true">
              <rect className="viz-bars-track" width="100%" height="8" />
              <rect
                className="viz-bars-fill"
                width={`${Math.min(100, Math.max(0, (item.value / top) * 100))}%`}
                height="8"
              />
            </svg>
            <span className="viz-bars-value">{format(item.value)}</span>
          </>
        );
        return (
          <li key={item.key}>
            {onOpen ? (
              <button type="button" className="viz-bars-row" onClick={() => onOpen(item.key)}>
                {row}
              </button>
            ) : (
              <div className="viz-bars-row">{row}</div>
            )}
          </li>
        );
      })}
    </ul>
  );
}
