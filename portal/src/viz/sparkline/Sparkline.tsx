// A line for a table's cell: one SVG path, cheap enough for fifty at once.

import { memo } from "react";
import { toneClass } from "../common/parts";
import { sparkPath } from "./path";
import "./sparkline.css";

export interface SparklineProps {
  values: readonly (number | null)[];
  /** What it says in words: "GPU utilization in the last hour, now 91 %". */
  label: string;
  min?: number | undefined;
  max?: number | undefined;
  width?: number | undefined;
  height?: number | undefined;
  tone?: number | undefined;
}

export const Sparkline = memo(function Sparkline(p: SparklineProps) {
  const { values, label, min = 0, max, width = 80, height = 20, tone = 0 } = p;
  const shape = sparkPath(values, { min, max, width, height });
  return (
    <svg
      className={`viz-spark ${toneClass(tone)}`}
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={label}
    >
      <line className="viz-spark-base" x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} />
      {shape.area && <path className="viz-spark-area" d={shape.area} />}
      {shape.line && <path className="viz-spark-line" d={shape.line} />}
      {shape.end && <circle className="viz-spark-end" cx={shape.end.x} cy={shape.end.y} r="1.75" />}
    </svg>
  );
});
