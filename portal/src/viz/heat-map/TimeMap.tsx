// A figure of all GPUs over time: GPUs as rows grouped by node, time as columns.

import {
  type KeyboardEvent,
  memo,
  type PointerEvent,
  type ReactNode,
  useDeferredValue,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { fit, point, useRedraw, useSize, widest } from "../common/canvas";
import { HiddenTable, Readout, Tip } from "../common/parts";
import { clamp, momentText } from "../common/scale";
import { useInk } from "../common/theme";
import { HeatLegend } from "./HeatLegend";
import "./heat-map.css";
import type { ScaleFigure } from "./paint";
import { FLAG_DOWN, FLAG_IDLE, marksOf, type Raster, rowHeight } from "./raster";
import { AXIS, TimePainter, type TimeRow } from "./time-paint";

export interface TimeTarget {
  row: TimeRow;
  index: number;
  at: number;
  value: number | null;
  idle: boolean;
  down: boolean;
}

export interface TimeMapProps {
  title: string;
  rows: readonly TimeRow[];
  raster: Raster;
  /** The first column begins here; milliseconds. */
  from: number;
  step: number;
  figure: ScaleFigure;
  /** The most pixels it may take; more rows are scrolled. */
  height?: number | undefined;
  tooltip?: ((target: TimeTarget) => ReactNode) | undefined;
  onOpen?: ((target: TimeTarget) => void) | undefined;
  /** Rows from first to last were dragged over. */
  onSelect?: ((first: number, last: number) => void) | undefined;
  /** Columns were dragged over: milliseconds. */
  onZoom?: ((from: number, to: number) => void) | undefined;
}

interface Spot {
  row: number;
  column: number;
}

export function TimeMap(props: TimeMapProps) {
  const { title, rows, raster, from, step, figure } = props;
  const ink = useInk();
  const redraw = useRedraw();
  const scroller = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const painter = useRef<TimePainter | null>(null);
  const { width } = useSize(scroller);
  const most = props.height ?? 420;
  const tall = rowHeight(raster.rows, most - AXIS);
  const total = AXIS + raster.rows * tall;
  const height = Math.min(most, total);
  const names = useMemo(
    () => widest(new Set(rows.map((r) => r.node)), `12px ${ink.fontMono}`),
    [rows, ink, redraw],
  );
  const label = Math.ceil(Math.min(Math.max(names, 40), width < 480 ? 88 : 140)) + 14;
  const seen = useMemo(() => marksOf(raster), [raster]);
  const [scrollTop, setScrollTop] = useState(0);
  const [hover, setHover] = useState<(Spot & { x: number; y: number }) | null>(null);
  const [drag, setDrag] = useState<{ from: Spot; to: Spot } | null>(null);
  const [spoken, setSpoken] = useState("");
  const cell = (width - label) / Math.max(1, raster.columns);

  useLayoutEffect(() => {
    const c = base.current && fit(base.current, width, height);
    if (!c || width <= label) return;
    painter.current ??= new TimePainter();
    painter.current.fill(raster, figure, ink);
    const view = { width, height, scrollTop, label, rowHeight: tall };
    painter.current.paint(c, raster, rows, from, step, view, ink);
  }, [raster, rows, from, step, figure, ink, width, height, scrollTop, label, tall, redraw]);

  useLayoutEffect(() => {
    const c = over.current && fit(over.current, width, height);
    if (!c) return;
    c.clearRect(0, 0, width, height);
    c.beginPath();
    c.rect(0, AXIS, width, height - AXIS);
    c.clip();
    const y = (row: number) => AXIS + row * tall - scrollTop;
    if (drag) {
      const top = y(Math.min(drag.from.row, drag.to.row));
      const bottom = y(Math.max(drag.from.row, drag.to.row) + 1);
      const left = label + Math.min(drag.from.column, drag.to.column) * cell;
      const right = label + (Math.max(drag.from.column, drag.to.column) + 1) * cell;
      c.fillStyle = ink.accent;
      c.globalAlpha = 0.2;
      c.fillRect(left, top, right - left, bottom - top);
      c.globalAlpha = 1;
      c.strokeStyle = ink.accent;
      c.strokeRect(left + 0.5, top + 0.5, right - left - 1, bottom - top - 1);
    } else if (hover) {
      c.strokeStyle = ink.surface;
      c.lineWidth = 3;
      const box = [label + hover.column * cell, y(hover.row), cell, tall] as const;
      c.strokeRect(...box);
      c.strokeStyle = ink.text;
      c.lineWidth = 1.5;
      c.strokeRect(...box);
    }
  }, [hover, drag, ink, width, height, scrollTop, label, tall, cell, redraw]);

  const spotAt = (x: number, y: number): Spot | null => {
    if (x < label || y < AXIS || y > height) return null;
    const row = Math.floor((y - AXIS + scrollTop) / tall);
    const column = Math.floor((x - label) / cell);
    return row < raster.rows && column < raster.columns ? { row, column } : null;
  };
  const target = (spot: Spot): TimeTarget | null => {
    const row = rows[spot.row];
    if (!row) return null;
    const index = spot.row * raster.columns + spot.column;
    const value = raster.values[index] ?? Number.NaN;
    const flags = raster.flags?.[index] ?? 0;
    return {
      row,
      index: spot.row,
      at: from + spot.column * step,
      value: Number.isNaN(value) ? null : value,
      idle: (flags & FLAG_IDLE) !== 0,
      down: (flags & FLAG_DOWN) !== 0,
    };
  };
  const text = (t: TimeTarget) =>
    t.down
      ? "failed"
      : `${t.value === null ? "no data" : figure.format(t.value)}${t.idle ? ", held, but idle" : ""}`;

  const move = (event: PointerEvent<HTMLDivElement>) => {
    if (!base.current) return;
    const { x, y } = point(event, base.current);
    const spot = spotAt(clamp(x, label, width - 1), y);
    if (drag) {
      if (spot) setDrag({ ...drag, to: spot });
      return;
    }
    setHover(spot && x >= label ? { ...spot, x, y } : null);
  };
  const down = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0 || event.pointerType !== "mouse" || !base.current) return;
    const { x, y } = point(event, base.current);
    const spot = spotAt(x, y);
    if (!spot) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ from: spot, to: spot });
  };
  const up = () => {
    const done = drag;
    setDrag(null);
    if (!done) return;
    const a = {
      row: Math.min(done.from.row, done.to.row),
      column: Math.min(done.from.column, done.to.column),
    };
    const b = {
      row: Math.max(done.from.row, done.to.row),
      column: Math.max(done.from.column, done.to.column),
    };
    const t = target(done.from);
    if (a.row === b.row && a.column === b.column) {
      if (t) props.onOpen?.(t);
      return;
    }
    if (props.onZoom && b.column > a.column)
      props.onZoom(from + a.column * step, from + (b.column + 1) * step);
    else props.onSelect?.(a.row, b.row);
  };
  const keys = (event: KeyboardEvent) => {
    if (event.key === "Escape") return setHover(null);
    if (event.key === "Enter" && hover) {
      const t = target(hover);
      if (t) props.onOpen?.(t);
      return;
    }
    const steps: Record<string, [number, number]> = {
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
      PageUp: [-16, 0],
      PageDown: [16, 0],
    };
    const by = steps[event.key];
    if (!by || raster.rows === 0) return;
    event.preventDefault();
    const now = hover ?? { row: 0, column: raster.columns - 1 - by[1] };
    const row = clamp(now.row + by[0], 0, raster.rows - 1);
    const column = clamp(now.column + by[1], 0, raster.columns - 1);
    const room = height - AXIS;
    const top = clamp(scrollTop, (row + 1) * tall - room, row * tall);
    if (scroller.current && top !== scrollTop) scroller.current.scrollTop = top;
    const spot = { row, column };
    setHover({ ...spot, x: label + (column + 0.5) * cell, y: AXIS + row * tall - top + tall / 2 });
    const t = target(spot);
    if (t) setSpoken(`${t.row.node}, GPU ${t.row.gpu}, ${momentText(t.at)}: ${text(t)}`);
  };

  const shown = hover && !drag && target(hover);
  return (
    <div className="viz-frame">
      <div
        ref={scroller}
        className="viz-time-scroll viz-focus"
        style={{ height }}
        role="application"
        aria-roledescription="heat map over time"
        aria-label={`${title}. Arrow keys move, Enter opens.`}
        tabIndex={0}
        onScroll={(e) => setScrollTop(e.currentTarget.scrollTop)}
        onKeyDown={keys}
        onPointerMove={move}
        onPointerDown={down}
        onPointerUp={up}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => !drag && setHover(null)}
        onBlur={() => setHover(null)}
      >
        <div className="viz-time-stage">
          <canvas ref={base} />
          <canvas ref={over} className="viz-over" />
        </div>
        <div style={{ height: total }} />
      </div>
      {shown && hover && (
        <Tip x={hover.x} y={hover.y}>
          {props.tooltip?.(shown) ?? (
            <>
              <div className="viz-tip-title">
                {shown.row.node} GPU {shown.row.gpu}, {momentText(shown.at)}
              </div>
              {text(shown)}
            </>
          )}
        </Tip>
      )}
      <HeatLegend figure={figure} marks={seen} />
      <Readout text={spoken} />
      <Numbers title={title} rows={rows} raster={raster} figure={figure} />
    </div>
  );
}

const Numbers = memo(function Numbers(
  given: Pick<TimeMapProps, "title" | "rows" | "raster" | "figure">,
) {
  const { title, figure } = given;
  const rows = useDeferredValue(given.rows);
  const raster = useDeferredValue(given.raster);
  const most = 128;
  const table = useMemo(
    () =>
      rows.slice(0, most).map((row, r) => {
        let [low, high, sum, n] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0];
        for (let i = r * raster.columns; i < (r + 1) * raster.columns; i++) {
          const v = raster.values[i] ?? Number.NaN;
          if (Number.isNaN(v)) continue;
          low = Math.min(low, v);
          high = Math.max(high, v);
          sum += v;
          n++;
        }
        const f = (v: number) => (n ? figure.format(v) : "no data");
        return [`${row.node} GPU ${row.gpu}`, f(low), f(sum / n), f(high)];
      }),
    [rows, raster, figure],
  );
  return (
    <HiddenTable
      caption={`${title}: ${figure.label}`}
      head={["GPU", "Least", "Mean", "Most"]}
      rows={table}
      note={rows.length > most ? `The first ${most} of ${rows.length} GPUs` : undefined}
    />
  );
});
