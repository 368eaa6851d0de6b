// What the kinds of bars look like.

import { Patterns, Swatch } from "../common/parts";

export interface GanttTone {
  label: string;
  tone: number;
}

export function GanttKey({ tones = [] }: { tones?: readonly GanttTone[] | undefined }) {
  return (
    <ul className="viz-legend viz-gantt-key">
      <li>
        <Box>
          <rect className="viz-key-past" width="18" height="10" />
        </Box>
        past
      </li>
      <li>
        <Box>
          <rect className="viz-key-solid" width="18" height="10" />
          <rect className="viz-key-edge" x="15" width="3" height="10" />
        </Box>
        running
      </li>
      <li>
        <Box>
          <rect className="viz-key-outline" x="0.5" y="0.5" width="17" height="9" />
        </Box>
        promised
      </li>
      <li>
        <Box>
          <Patterns id="viz-gantt-key" />
          <rect className="viz-key-reserved" x="0.5" y="0.5" width="17" height="9" />
          <rect fill="url(#viz-gantt-key-hatch)" width="18" height="10" />
        </Box>
        reserved
      </li>
      {tones.map((one) => (
        <li key={one.label}>
          <Swatch tone={one.tone} />
          <span className="viz-cut" title={one.label}>
            {one.label}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Box({ children }: { children: React.ReactNode }) {
  return (
    <svg width="18" height="10" aria-hidden="true">
      {children}
    </svg>
  );
}
