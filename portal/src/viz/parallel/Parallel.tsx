// Parallel coordinates: one line per run, one axis per param or metric. Ranges are brushed on the axes.

import { type PointerEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { clip, fit, measurer, point, useRedraw, useSize } from "../common/canvas";
import { rampCss, rgbOf, tint } from "../common/colour";
import { clamp } from "../common/scale";
import { useInk } from "../common/theme";
import { place, ticksOf, valueAt } from "../xy/axis";
import { type ParallelAxis, height as placeOn, type Ranges, within } from "./model";
import "./parallel.css";

export interface ParallelProps {
  /** A label for screen readers. */
  title: string;
  axes: readonly ParallelAxis[];
  /** How many lines there are. */
  count: number;
  ranges: Ranges;
  onRange: (key: string, range: readonly [number, number] | undefined) => void;
  /** From 0 to 1 for each line; NaN without a value. By default all lines have one colour. */
  colour?: Float64Array | undefined;
  /** The header of each axis, with its name and its actions. */
  head: (axis: ParallelAxis) => ReactNode;
  text: (axis: ParallelAxis, value: number) => string;
  onOpen?: (line: number) => void;
  /** The name of a line. */
  name: (line: number) => string;
  height?: number;
}

/** The minimum distance of two axes. A narrow chart scrolls. */
const LEAST = 104;
const HEAD = 34;
const TOP = 12;
const FOOT = 12;
const STEPS = 32;

export function Parallel(props: ParallelProps) {
  const { axes, count, ranges, onRange, colour, head, text, onOpen, height = 420 } = props;
  const ink = useInk();
  const redraw = useRedraw();
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const room = useSize(frame).width;
  const width = Math.max(room, axes.length * LEAST);
  const [brush, setBrush] = useState<{ axis: number; from: number; to: number }>();
  const [hover, setHover] = useState<number>();

  const side = width > 0 && axes.length > 0 ? width / axes.length / 2 : 0;
  const left = (i: number) => side + i * ((width - 2 * side) / Math.max(1, axes.length - 1));
  const foot = height - FOOT;
  const py = (axis: ParallelAxis, value: number) => {
    const part = placeOn(axis, value);
    return foot - part * (foot - TOP);
  };
  const inside = useMemo(() => within(axes, ranges, count), [axes, ranges, count]);
  const ys = useMemo(
    () => axes.map((axis) => Float32Array.from(axis.at, (v) => py(axis, v))),
    [axes, height],
  );

  useEffect(() => {
    const g = canvas.current && room > 0 ? fit(canvas.current, width, height) : null;
    if (!g) return;
    g.clearRect(0, 0, width, height);
    const font = `12px ${ink.fontSans}`;
    const ramp = rampCss(ink.heat.slice(1).map(rgbOf), STEPS);
    const strength = count > 3000 ? 0.35 : count > 300 ? 0.6 : 0.9;
    const path = (line: number) => {
      let pen = false;
      for (let a = 0; a < axes.length; a++) {
        const y = ys[a]?.[line] as number;
        if (Number.isNaN(y)) {
          pen = false;
          continue;
        }
        if (pen) g.lineTo(left(a), y);
        else g.moveTo(left(a), y);
        pen = true;
      }
    };
    const some = Object.keys(ranges).some((key) => axes.some((a) => a.key === key));
    // Lines of one colour share a path, because ten thousand strokes would be slow.
    const groups = new Map<string, number[]>();
    for (let i = 0; i < count; i++) {
      const part = colour?.[i];
      const style =
        some && !inside[i]
          ? ""
          : part === undefined
            ? ink.accent
            : Number.isNaN(part)
              ? ink.lineStrong
              : (ramp[Math.min(STEPS - 1, Math.floor(part * STEPS))] ?? ink.accent);
      const group = groups.get(style);
      if (group) group.push(i);
      else groups.set(style, [i]);
    }
    g.lineWidth = 1;
    for (const style of ["", ...[...groups.keys()].filter(Boolean)]) {
      const group = groups.get(style);
      if (!group) continue;
      g.strokeStyle = style === "" ? tint(ink.lineStrong, ink.surface, 0.4) : style;
      g.globalAlpha = style === "" ? 0.5 : strength;
      for (let i = 0; i < group.length; i += 500) {
        g.beginPath();
        for (const line of group.slice(i, i + 500)) path(line);
        g.stroke();
      }
    }
    g.globalAlpha = 1;
    if (hover !== undefined) {
      g.beginPath();
      path(hover);
      g.strokeStyle = ink.text;
      g.lineWidth = 2;
      g.stroke();
    }
    g.font = font;
    g.textBaseline = "middle";
    g.textAlign = "left";
    const widthOf = measurer(font);
    axes.forEach((axis, i) => {
      const x = Math.round(left(i)) + 0.5;
      g.strokeStyle = ink.lineStrong;
      g.lineWidth = 1;
      g.beginPath();
      g.moveTo(x, TOP);
      g.lineTo(x, foot);
      g.stroke();
      const values = axis.texts
        ? thinned(axis.texts.length, Math.floor((foot - TOP) / 16))
        : ticksOf(axis.axis, Math.floor(height / 60));
      for (const value of values) {
        const y = py(axis, value);
        const said = clip(text(axis, value), side + LEAST / 3, widthOf);
        g.fillStyle = ink.surface;
        g.globalAlpha = 0.8;
        g.fillRect(x + 3, y - 8, widthOf(said) + 4, 16);
        g.globalAlpha = 1;
        g.fillStyle = ink.textMuted;
        g.fillText(said, x + 5, y);
      }
    });
  }, [axes, ys, inside, ranges, colour, hover, width, room, height, ink, redraw, count]);

  const axisAt = (x: number) => {
    const i = axes.findIndex((_, a) => Math.abs(left(a) - x) <= 14);
    return i < 0 ? undefined : i;
  };
  const down = (e: PointerEvent<HTMLElement>) => {
    if (e.button !== 0) return;
    const p = point(e, e.currentTarget);
    const axis = axisAt(p.x);
    if (axis === undefined) {
      if (hover !== undefined) onOpen?.(hover);
      return;
    }
    e.currentTarget.setPointerCapture(e.pointerId);
    setBrush({ axis, from: p.y, to: p.y });
  };
  const move = (e: PointerEvent<HTMLElement>) => {
    const p = point(e, e.currentTarget);
    if (brush) setBrush({ ...brush, to: p.y });
    else setHover(axisAt(p.x) === undefined ? lineAt(p.x, p.y) : undefined);
  };
  const up = () => {
    if (!brush) return;
    setBrush(undefined);
    const axis = axes[brush.axis];
    if (!axis) return;
    const [high, low] = [Math.min(brush.from, brush.to), Math.max(brush.from, brush.to)];
    if (low - high < 4) onRange(axis.key, undefined);
    else onRange(axis.key, rangeOf(axis, low, high, foot));
  };
  /** The line nearest to a point between two axes. */
  const lineAt = (x: number, y: number): number | undefined => {
    const a = axes.findIndex((_, i) => left(i) <= x && x <= left(i + 1));
    const [from, to] = [ys[a], ys[a + 1]];
    if (!from || !to) return undefined;
    const part = (x - left(a)) / (left(a + 1) - left(a));
    let best: number | undefined;
    let least = 8;
    for (let i = 0; i < count; i++) {
      if (!inside[i]) continue;
      const far = Math.abs((from[i] as number) * (1 - part) + (to[i] as number) * part - y);
      if (far < least) {
        least = far;
        best = i;
      }
    }
    return best;
  };

  return (
    <div ref={frame} className="viz-frame viz-parallel">
      <div style={{ width: room > 0 ? width : "100%" }}>
        <div className="viz-parallel-heads" style={{ height: HEAD }}>
          {axes.map((axis, i) => (
            <div
              key={axis.key}
              style={{ left: left(i), maxWidth: Math.max(LEAST, 2 * side) - 8 }}
              className="viz-parallel-head"
            >
              {head(axis)}
            </div>
          ))}
        </div>
        <div
          className="viz-parallel-plot"
          role="img"
          aria-label={props.title}
          style={{ height }}
          onPointerDown={down}
          onPointerMove={move}
          onPointerUp={up}
          onPointerLeave={() => setHover(undefined)}
        >
          <canvas ref={canvas} />
          {axes.map((axis, i) => {
            const range = brush?.axis === i ? undefined : ranges[axis.key];
            const [from, to] = brush?.axis === i ? [brush.from, brush.to] : pixels(axis, range, py);
            if (from === undefined || to === undefined) return null;
            return (
              <span
                key={axis.key}
                className="viz-parallel-brush"
                style={{
                  left: left(i) - 7,
                  top: Math.min(from, to),
                  height: Math.max(4, Math.abs(to - from)),
                }}
              />
            );
          })}
          {hover !== undefined && (
            <span className="viz-parallel-name">
              <bdi>{props.name(hover)}</bdi>
            </span>
          )}
        </div>
      </div>
    </div>
  );
}

function pixels(
  axis: ParallelAxis,
  range: readonly [number, number] | undefined,
  py: (axis: ParallelAxis, value: number) => number,
): [number, number] | [] {
  if (!range) return [];
  const inside = (v: number) => clamp(v, axis.axis.from, axis.axis.to);
  return [py(axis, inside(range[0])) + 3, py(axis, inside(range[1])) - 3];
}

/** The brushed range, in values. A brush to the end of an axis includes the end. */
function rangeOf(
  axis: ParallelAxis,
  low: number,
  high: number,
  foot: number,
): readonly [number, number] {
  const reach = 6;
  const a = axis.axis;
  const slack = (v: number) => Math.abs(v) * 1e-6 + (a.to - a.from) * 1e-6;
  if (axis.texts) {
    const value = (pixel: number) => valueAt(a, pixel, foot, TOP);
    const half = axis.texts.length > 1 ? 0.25 : 1;
    return [
      Math.round((value(low) - half) * 100) / 100,
      Math.round((value(high) + half) * 100) / 100,
    ];
  }
  const from = low >= place(a, a.from, foot, TOP) - reach ? a.from - slack(a.from) : undefined;
  const to = high <= place(a, a.to, foot, TOP) + reach ? a.to + slack(a.to) : undefined;
  return [from ?? valueAt(a, low, foot, TOP), to ?? valueAt(a, high, foot, TOP)];
}

/** An evenly spaced sample of the integers from 0. */
function thinned(all: number, most: number): number[] {
  const every = Math.max(1, Math.ceil(all / Math.max(1, most)));
  return Array.from({ length: Math.ceil(all / every) }, (_, i) => i * every);
}

/** The legend of the colours. */
export function Ramp({ from, to, label }: { from: string; to: string; label: string }) {
  const ink = useInk();
  return (
    <span className="viz-ramp">
      <span className="viz-cut">{label}</span>
      <span>{from}</span>
      <i
        aria-hidden="true"
        style={{ background: `linear-gradient(to right, ${ink.heat.slice(1).join(", ")})` }}
      />
      <span>{to}</span>
    </span>
  );
}
