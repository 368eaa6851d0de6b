// Points: one value against another, thousands of them.

import { type KeyboardEvent, memo, type PointerEvent, useMemo, useState } from "react";
import { point } from "../common/canvas";
import { tint } from "../common/colour";
import { HiddenTable, Readout } from "../common/parts";
import { clamp } from "../common/scale";
import { axisOf, extentOf } from "./axis";
import type { Sides } from "./frame";
import { Mark, type Painted, PlotFrame, usePlot } from "./plot";

export interface XYPoint {
  key: string;
  label: string;
  x: number;
  y: number;
  marked?: boolean;
}

export interface ScatterProps {
  title: string;
  points: readonly XYPoint[];
  xTitle: string;
  yTitle: string;
  xText: (value: number) => string;
  yText: (value: number) => string;
  xLog?: boolean;
  yLog?: boolean;
  height?: number;
  onOpen?: (key: string) => void;
}

export function Scatter(props: ScatterProps) {
  const { title, points, xTitle, yTitle, xText, yText, height = 420, onOpen } = props;
  const { xLog = false, yLog = false } = props;
  const [at, setAt] = useState<number>();
  const [spoken, setSpoken] = useState("");

  // From left to right, the order of the arrow keys.
  const sorted = useMemo(
    () =>
      points
        .filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y))
        .filter((p) => (!xLog || p.x > 0) && (!yLog || p.y > 0))
        .sort((a, b) => a.x - b.x),
    [points, xLog, yLog],
  );
  const x = useMemo(() => axisOf(extentOf([sorted.map((p) => p.x)], xLog), xLog), [sorted, xLog]);
  const y = useMemo(() => axisOf(extentOf([sorted.map((p) => p.y)], yLog), yLog), [sorted, yLog]);
  const xs: Sides = { axis: x, title: xTitle, text: xText };
  const ys: Sides = { axis: y, title: yTitle, text: yText };
  const empty = sorted.length === 0;
  const paint = (g: CanvasRenderingContext2D, { ink, px, py }: Painted) => {
    const radius = sorted.length > 2000 ? 2 : 3.5;
    const plain = tint(ink.accent, ink.surface, 0.75);
    for (const marked of [false, true]) {
      g.fillStyle = marked ? (ink.series[1] ?? ink.accent) : plain;
      for (const p of sorted) {
        if (Boolean(p.marked) !== marked) continue;
        g.beginPath();
        g.arc(px(p.x), py(p.y), marked ? radius + 1.5 : radius, 0, 7);
        g.fill();
      }
    }
  };
  const plot = usePlot(xs, ys, height, empty ? undefined : paint, [sorted]);
  const { frame, ink, box, px, py } = plot;

  const show = (index: number) => {
    const p = sorted[index];
    if (!p) return;
    setAt(index);
    setSpoken(`${p.label}: ${xTitle} ${xText(p.x)}, ${yTitle} ${yText(p.y)}`);
  };
  const keys = (e: KeyboardEvent) => {
    const far = e.shiftKey ? 10 : 1;
    const last = sorted.length - 1;
    if (e.key === "ArrowRight") show(clamp((at ?? -1) + far, 0, last));
    else if (e.key === "ArrowLeft") show(clamp((at ?? last + 1) - far, 0, last));
    else if (e.key === "Home") show(0);
    else if (e.key === "End") show(last);
    else if (e.key === "Escape") setAt(undefined);
    else if (e.key === "Enter" && at !== undefined && onOpen) onOpen(sorted[at]?.key ?? "");
    else return;
    e.preventDefault();
  };
  const move = (e: PointerEvent) => {
    if (!frame.current) return;
    const p = point(e, frame.current);
    let best: number | undefined;
    let least = 24 * 24;
    sorted.forEach((one, i) => {
      const far = (px(one.x) - p.x) ** 2 + (py(one.y) - p.y) ** 2;
      if (far < least) {
        least = far;
        best = i;
      }
    });
    setAt(best);
  };

  const shown = at === undefined ? undefined : sorted[at];
  return (
    <PlotFrame
      plot={plot}
      title={title}
      help="Left and right read the points, Enter opens one."
      height={height}
      empty={empty ? "No run has both values" : undefined}
      keys={keys}
      onLeave={() => setAt(undefined)}
      pointer={{
        onPointerMove: move,
        onPointerDown: move,
        onPointerLeave: () => setAt(undefined),
        onClick: () => shown && onOpen?.(shown.key),
      }}
    >
      {shown && box && (
        <Mark x={px(shown.x)} y={py(shown.y)} colour={ink.text}>
          <div className="viz-tip-title">{shown.label}</div>
          <div>
            {yTitle} <span className="viz-number">{yText(shown.y)}</span>
          </div>
          <div>
            {xTitle} <span className="viz-number">{xText(shown.x)}</span>
          </div>
        </Mark>
      )}
      <Readout text={spoken} />
      <Numbers title={title} points={sorted} {...{ xTitle, yTitle, xText, yText }} />
    </PlotFrame>
  );
}

/** Rows of the table for screen readers. Ten thousand rows would not be usable. */
const READ = 100;

const Numbers = memo(function Numbers(
  p: Pick<ScatterProps, "title" | "points" | "xTitle" | "yTitle" | "xText" | "yText">,
) {
  const rows = p.points.slice(0, READ).map((one) => [one.label, p.xText(one.x), p.yText(one.y)]);
  const note = p.points.length > READ ? `The first ${READ} of ${p.points.length}` : undefined;
  return (
    <HiddenTable caption={p.title} head={["Run", p.xTitle, p.yTitle]} rows={rows} note={note} />
  );
});
