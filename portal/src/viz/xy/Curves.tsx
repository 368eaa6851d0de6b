// Many lines over one numeric axis: steps, time or cost. Each line has its own points.

import { type KeyboardEvent, memo, type PointerEvent, useMemo, useState } from "react";
import { point } from "../common/canvas";
import { tint } from "../common/colour";
import { HiddenTable, Readout, Swatch } from "../common/parts";
import { clamp, lowerBound, upperBound } from "../common/scale";
import { seriesColour } from "../common/theme";
import { type Axis, axisOf, extentOf, nearestPoint, valueAt } from "./axis";
import type { Sides } from "./frame";
import { Mark, type Painted, PlotFrame, usePlot } from "./plot";
import { smooth } from "./smooth";

export interface XYLine {
  key: string;
  label: string;
  /** Ascending. */
  x: readonly number[];
  y: readonly number[];
}

export interface CurvesProps {
  /** The label of the chart for screen readers. */
  title: string;
  lines: readonly XYLine[];
  xTitle: string;
  yTitle: string;
  xText: (value: number) => string;
  yText: (value: number) => string;
  yLog?: boolean;
  /** From 0 to 1; the chart then draws the raw values faintly behind. */
  smoothing?: number;
  height?: number;
  /** A click on a line, or Enter on the announced line. */
  onOpen?: (key: string) => void;
}

interface At {
  line: number;
  point: number;
}

export function Curves(props: CurvesProps) {
  const { title, lines, xTitle, yTitle, xText, yText, yLog = false, height = 260 } = props;
  const { smoothing = 0, onOpen } = props;
  const [zoom, setZoom] = useState<readonly [number, number]>();
  const [at, setAt] = useState<At>();
  const [brush, setBrush] = useState<readonly [number, number]>();
  const [spoken, setSpoken] = useState("");

  const drawn = useMemo(
    () => lines.map((l) => ({ ...l, raw: l.y, y: smooth(l.y, smoothing) })),
    [lines, smoothing],
  );
  const whole = useMemo(() => axisOf(extentOf(lines.map((l) => l.x)), false, true), [lines]);
  const x: Axis = zoom ? { from: zoom[0], to: zoom[1], log: false } : whole;
  const y = useMemo(() => {
    const seen = drawn.map((l) =>
      zoom ? l.y.slice(lowerBound(l.x, zoom[0]), upperBound(l.x, zoom[1])) : l.y,
    );
    return axisOf(extentOf(seen, yLog), yLog);
  }, [drawn, zoom, yLog]);

  const xs: Sides = { axis: x, title: xTitle, text: xText };
  const ys: Sides = { axis: y, title: yLog ? `${yTitle}, logarithmic` : yTitle, text: yText };
  const empty = lines.length === 0;
  const paint = (g: CanvasRenderingContext2D, { ink, box, px, py }: Painted) => {
    g.save();
    g.beginPath();
    g.rect(box.left, box.top - 4, box.right - box.left, box.bottom - box.top + 8);
    g.clip();
    const draw = (l: (typeof drawn)[number], values: readonly number[]) => {
      g.beginPath();
      let pen = false;
      let points = 0;
      const from = Math.max(0, lowerBound(l.x, x.from) - 1);
      const to = Math.min(l.x.length, upperBound(l.x, x.to) + 1);
      for (let i = from; i < to; i++) {
        const v = values[i] as number;
        const vy = Number.isFinite(v) ? py(v) : Number.NaN;
        if (Number.isNaN(vy)) {
          pen = false;
          continue;
        }
        const vx = px(l.x[i] as number);
        if (pen) g.lineTo(vx, vy);
        else g.moveTo(vx, vy);
        pen = true;
        points += 1;
      }
      g.stroke();
      // A single point has no line. Dots also mark the points of short lines.
      if (points === 1 || l.x.length <= 30) {
        for (let i = from; i < to; i++) {
          const vy = py(values[i] as number);
          if (!Number.isFinite(vy)) continue;
          g.beginPath();
          g.arc(px(l.x[i] as number), vy, 2, 0, 7);
          g.fill();
        }
      }
    };
    const shown = at?.line;
    const order = drawn.map((_, i) => i).sort((a, b) => Number(a === shown) - Number(b === shown));
    for (const i of order) {
      const line = drawn[i] as (typeof drawn)[number];
      const colour = seriesColour(ink, i);
      const others = shown !== undefined && shown !== i;
      g.setLineDash(i >= 8 && i % 16 >= 8 ? [8, 3, 2, 3] : []);
      if (smoothing > 0) {
        g.strokeStyle = tint(colour, ink.surface, 0.22);
        g.fillStyle = g.strokeStyle;
        g.lineWidth = 1;
        draw(line, line.raw);
      }
      g.strokeStyle = others ? tint(colour, ink.surface, 0.35) : colour;
      g.fillStyle = g.strokeStyle;
      g.lineWidth = shown === i ? 2.5 : 1.5;
      draw(line, line.y);
    }
    g.restore();
  };
  const plot = usePlot(xs, ys, height, empty ? undefined : paint, [drawn, at?.line, smoothing]);
  const { frame, ink, box, px, py } = plot;

  const say = (next: At) => {
    const l = drawn[next.line];
    if (!l) return;
    setAt(next);
    setSpoken(
      `${l.label}: ${xTitle} ${xText(l.x[next.point] as number)}, ${yTitle} ${yText(l.raw[next.point] as number)}`,
    );
  };

  const keys = (e: KeyboardEvent) => {
    if (e.key === "Escape") {
      setAt(undefined);
      setZoom(undefined);
      return;
    }
    const now = at ?? { line: 0, point: -1 };
    const points = drawn[now.line]?.x.length ?? 0;
    const far = e.shiftKey ? 10 : 1;
    const to = (p: number) => say({ line: now.line, point: clamp(p, 0, points - 1) });
    const line = (l: number) => {
      const next = clamp(l, 0, drawn.length - 1);
      const value = drawn[now.line]?.x[Math.max(0, now.point)] ?? 0;
      const of = drawn[next]?.x ?? [];
      say({ line: next, point: clamp(lowerBound(of, value), 0, of.length - 1) });
    };
    if (e.key === "ArrowRight") to(now.point + far);
    else if (e.key === "ArrowLeft") to(now.point - far);
    else if (e.key === "Home") to(0);
    else if (e.key === "End") to(points - 1);
    else if (e.key === "ArrowDown") line(now.line + 1);
    else if (e.key === "ArrowUp") line(now.line - 1);
    else if (e.key === "0") setZoom(undefined);
    else if (e.key === "+" || e.key === "=") zoomBy(0.5);
    else if (e.key === "-") zoomBy(2);
    else if (e.key === "Enter" && at && onOpen) onOpen(drawn[at.line]?.key ?? "");
    else return;
    e.preventDefault();
  };

  const zoomBy = (factor: number) => {
    const middle = at ? (drawn[at.line]?.x[at.point] ?? x.from) : (x.from + x.to) / 2;
    const half = ((x.to - x.from) * factor) / 2;
    const from = Math.max(whole.from, middle - half);
    const to = Math.min(whole.to, middle + half);
    setZoom(from <= whole.from && to >= whole.to ? undefined : [from, to]);
  };

  const move = (e: PointerEvent) => {
    if (!frame.current || !box) return;
    const p = point(e, frame.current);
    if (brush) {
      setBrush([brush[0], p.x]);
      return;
    }
    const value = valueAt(x, p.x, box.left, box.right);
    setAt(nearestPoint(drawn, p, px, py, value));
  };
  const down = (e: PointerEvent) => {
    if (e.button !== 0 || !frame.current) return;
    // A finger scrolls the page; a touch reads values.
    if (e.pointerType !== "mouse") {
      move(e);
      return;
    }
    e.currentTarget.setPointerCapture(e.pointerId);
    const p = point(e, frame.current);
    setBrush([p.x, p.x]);
  };
  const up = () => {
    if (!brush || !box) return;
    setBrush(undefined);
    const [a, b] = [Math.min(...brush), Math.max(...brush)];
    if (b - a < 6) {
      if (at && onOpen) onOpen(drawn[at.line]?.key ?? "");
      return;
    }
    const value = (pixel: number) =>
      clamp(valueAt(x, pixel, box.left, box.right), whole.from, whole.to);
    if (value(b) > value(a)) setZoom([value(a), value(b)]);
  };

  const line = at ? drawn[at.line] : undefined;
  const shown = line && at ? { x: line.x[at.point] ?? 0, y: line.y[at.point] ?? 0 } : undefined;
  return (
    <PlotFrame
      plot={plot}
      title={title}
      help="Left and right read values, up and down change the line, plus and minus zoom, Escape resets."
      height={height}
      empty={empty ? "No values to draw" : undefined}
      keys={keys}
      onLeave={() => setAt(undefined)}
      pointer={{
        onPointerMove: move,
        onPointerDown: down,
        onPointerUp: up,
        onPointerLeave: () => !brush && setAt(undefined),
        onDoubleClick: () => setZoom(undefined),
      }}
    >
      {brush && box && Math.abs(brush[1] - brush[0]) >= 6 && (
        <div
          className="viz-xy-brush"
          style={{
            left: Math.min(...brush),
            width: Math.abs(brush[1] - brush[0]),
            top: box.top,
            height: box.bottom - box.top,
          }}
        />
      )}
      {line && at && shown && box && !brush && (
        <Mark x={px(shown.x)} y={py(shown.y)} colour={seriesColour(ink, at.line)}>
          <div className="viz-tip-title">
            {xTitle.replace(/ \(.*\)$/, "")} {xText(shown.x)}
          </div>
          <div className="viz-tip-rows">
            <Swatch tone={at.line} />
            <span>{line.label}</span>
            <span className="viz-number">{yText(line.raw[at.point] ?? Number.NaN)}</span>
          </div>
          {smoothing > 0 && <div className="viz-tip-title">smoothed {yText(shown.y)}</div>}
        </Mark>
      )}
      {zoom && (
        <button
          type="button"
          className="viz-button viz-xy-reset"
          onClick={() => setZoom(undefined)}
        >
          Show all
        </button>
      )}
      {lines.length > 1 && <Legend lines={lines} />}
      <Readout text={spoken} />
      <Numbers title={title} lines={lines} xText={xText} yText={yText} xTitle={xTitle} />
    </PlotFrame>
  );
}

/** With more lines than this, the legend shows a few, and pointing shows the names. */
const NAMED = 24;
const SOME = 8;

const Legend = memo(function Legend({ lines }: { lines: readonly XYLine[] }) {
  const named = lines.length > NAMED ? SOME : NAMED;
  return (
    <ul className="viz-legend">
      {lines.slice(0, named).map((l, i) => (
        <li key={l.key}>
          <Swatch tone={i} dashed={i % 16 >= 8} />
          <bdi className="viz-cut" title={l.label}>
            {l.label}
          </bdi>
        </li>
      ))}
      {lines.length > named && <li>and {lines.length - named} more</li>}
    </ul>
  );
});

const Numbers = memo(function Numbers({
  title,
  lines,
  xTitle,
  xText,
  yText,
}: Pick<CurvesProps, "title" | "lines" | "xTitle" | "xText" | "yText">) {
  const rows = useMemo(
    () =>
      lines.map((l) => {
        const [low, high] = extentOf([l.y]) ?? [Number.NaN, Number.NaN];
        const last = l.y.length - 1;
        return [
          l.label,
          String(l.y.length),
          yText(l.y[0] ?? Number.NaN),
          yText(l.y[last] ?? Number.NaN),
          yText(low),
          yText(high),
          xText(l.x[last] ?? Number.NaN),
        ];
      }),
    [lines, xText, yText],
  );
  return (
    <HiddenTable
      caption={title}
      head={["Line", "Points", "First", "Last", "Least", "Greatest", `Last ${xTitle}`]}
      rows={rows}
    />
  );
});
