// What ran, runs and will run: bars over time on nodes or GPUs.

import {
  type KeyboardEvent,
  memo,
  type PointerEvent,
  type ReactNode,
  useDeferredValue,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { fit, point, useRedraw, useSize, widest } from "../common/canvas";
import { HiddenTable, Readout, Tip } from "../common/parts";
import { clamp, momentText } from "../common/scale";
import { useInk } from "../common/theme";
import { GanttKey, type GanttTone } from "./GanttKey";
import "./gantt.css";
import {
  type BarHit,
  type BarKind,
  firstBar,
  type GanttBar,
  type GanttRow,
  hitGantt,
  layoutGantt,
  nextBar,
  panView,
  type View,
  zoomView,
} from "./layout";
import { AXIS, paintCursor, paintGantt, type Stage, timeAt, xOf } from "./paint";

export type { BarKind, GanttBar, GanttRow, View } from "./layout";

export interface GanttProps {
  title: string;
  rows: readonly GanttRow[];
  bars: readonly GanttBar[];
  now: number;
  /** The part of time in sight; all where left out, and then the chart keeps its own. */
  view?: View | undefined;
  onView?: ((view: View) => void) | undefined;
  /** What is seen until somebody zooms; all where left out. */
  first?: View | undefined;
  /** The most pixels it may take; more rows are scrolled. */
  height?: number | undefined;
  lane?: number | undefined;
  /** The legend of the colours. */
  keys?: readonly GanttTone[] | undefined;
  tooltip?: ((bar: GanttBar, row: GanttRow) => ReactNode) | undefined;
  onOpen?: ((bar: GanttBar) => void) | undefined;
}

const WORD: Record<BarKind, string> = {
  past: "ran",
  running: "running",
  promised: "promised",
  reserved: "reserved",
};

export function Gantt(props: GanttProps) {
  const { title, rows, bars, now, lane = 20 } = props;
  const ink = useInk();
  const redraw = useRedraw();
  const scroller = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(scroller);
  const layout = useMemo(() => layoutGantt(rows, bars, now, lane), [rows, bars, now, lane]);
  const limits: View = { from: layout.from, to: layout.to + (layout.to - layout.from) * 0.02 };
  const [own, setOwn] = useState<View | null>(null);
  const view = props.view ?? own ?? props.first ?? limits;
  const height = Math.min(props.height ?? 420, AXIS + layout.height);
  const names = useMemo(
    () =>
      widest(
        rows.map((r) => r.label),
        `12px ${ink.fontMono}`,
      ),
    [rows, ink, redraw],
  );
  const label = Math.ceil(Math.min(Math.max(names, 40), width < 480 ? 88 : 160)) + 14;
  const [scrollTop, setScrollTop] = useState(0);
  const [hover, setHover] = useState<{ hit: BarHit; x: number; y: number } | null>(null);
  const [cursor, setCursor] = useState<BarHit | null>(null);
  const [spoken, setSpoken] = useState("");
  const stage: Stage = { width, height, label, scrollTop, view, now };

  useLayoutEffect(() => {
    const c = base.current && fit(base.current, width, height);
    if (c && width > label) paintGantt(c, layout, rows, bars, stage, ink);
  }, [layout, rows, bars, width, height, scrollTop, view.from, view.to, now, ink, redraw]);

  useLayoutEffect(() => {
    const c = over.current && fit(over.current, width, height);
    if (!c) return;
    c.clearRect(0, 0, width, height);
    if (hover) paintCursor(c, layout, hover.hit, stage, ink.text, 1.5);
    if (cursor) paintCursor(c, layout, cursor, stage, ink.focus, 2);
  }, [layout, hover, cursor, width, height, scrollTop, view.from, view.to, ink, redraw]);

  const latest = useRef({ stage, limits, view, onView: props.onView });
  latest.current = { stage, limits, view, onView: props.onView };
  const change = (next: View) => {
    setOwn(next);
    latest.current.onView?.(next);
    latest.current.view = next;
  };

  // React's wheel listener may not keep the page from scrolling; this one may.
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      const { stage: s, limits: l } = latest.current;
      const span = (s.view.to - s.view.from) / Math.max(1, s.width - s.label);
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const at = timeAt(s, point(event, element).x);
        change(zoomView(latest.current.view, at, Math.exp(event.deltaY * 0.002), l));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        change(panView(latest.current.view, (event.deltaX || event.deltaY) * span, l));
      }
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  const fingers = useRef(new Map<number, { x: number; y: number }>());
  const dragged = useRef(0);
  const hitAt = (x: number, y: number) => {
    if (x < label || y < AXIS || y > height) return null;
    const slack = ((view.to - view.from) / Math.max(1, width - label)) * 2;
    return hitGantt(layout, timeAt(stage, x), y - AXIS + scrollTop, slack);
  };
  const down = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0) return;
    const at = point(event, event.currentTarget);
    // Beyond the canvas is the scroll bar.
    if (at.x > width) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    fingers.current.set(event.pointerId, at);
    if (fingers.current.size === 1) dragged.current = 0;
    setCursor(null);
  };
  const move = (event: PointerEvent<HTMLDivElement>) => {
    const at = point(event, event.currentTarget);
    const before = fingers.current.get(event.pointerId);
    if (!before) {
      const hit = hitAt(at.x, at.y);
      setHover(hit ? { hit, ...at } : null);
      return;
    }
    const perPixel = (view.to - view.from) / Math.max(1, width - label);
    if (fingers.current.size === 2) {
      const other = [...fingers.current].find(([id]) => id !== event.pointerId)?.[1];
      if (other) {
        const was = Math.max(20, Math.abs(before.x - other.x));
        const is = Math.max(20, Math.abs(at.x - other.x));
        change(
          zoomView(latest.current.view, timeAt(stage, (at.x + other.x) / 2), was / is, limits),
        );
      }
      dragged.current = 99;
    } else {
      dragged.current += Math.abs(at.x - before.x) + Math.abs(at.y - before.y);
      if (dragged.current > 4) {
        setHover(null);
        change(panView(latest.current.view, (before.x - at.x) * perPixel, limits));
        if (event.pointerType === "mouse") event.currentTarget.scrollTop += before.y - at.y;
      }
    }
    fingers.current.set(event.pointerId, at);
  };
  const up = (event: PointerEvent<HTMLDivElement>) => {
    const at = fingers.current.get(event.pointerId);
    fingers.current.delete(event.pointerId);
    if (!at || dragged.current > 4) return;
    const hit = hitAt(at.x, at.y);
    const bar = hit && bars[hit.bar];
    if (bar) props.onOpen?.(bar);
  };

  const words = (bar: GanttBar) =>
    `${bar.label}, ${rows.find((r) => r.id === bar.row)?.label ?? bar.row}, ${WORD[bar.kind]} from ${momentText(bar.from)}${
      bar.to === null ? "" : ` to ${momentText(bar.to)}`
    }`;
  const moveTo = (next: BarHit | null) => {
    const bar = next && bars[next.bar];
    if (!next || !bar) return;
    setCursor(next);
    setSpoken(words(bar));
    const place = layout.rows[next.row];
    let top = scrollTop;
    if (place) {
      const y = place.top + next.lane * lane;
      top = clamp(scrollTop, y + lane * 2 - (height - AXIS), y);
      if (scroller.current && top !== scrollTop) scroller.current.scrollTop = top;
    }
    const span = view.to - view.from;
    const end = bar.to ?? now;
    let seen = view;
    if (end < view.from || bar.from > view.to) {
      seen = panView(view, bar.from - view.from - span * 0.3, limits);
      change(seen);
    }
    const x = clamp(
      xOf({ ...stage, view: seen }, (Math.max(bar.from, seen.from) + Math.min(end, seen.to)) / 2),
      label,
      width,
    );
    const y = AXIS + (place?.top ?? 0) + (next.lane + 0.5) * lane - top;
    setHover({ hit: next, x, y });
  };
  const keys = (event: KeyboardEvent) => {
    const span = view.to - view.from;
    const arrow = ARROWS[event.key];
    if (arrow) {
      event.preventDefault();
      if (event.shiftKey && arrow[0]) change(panView(view, arrow[0] * span * 0.2, limits));
      else if (cursor) moveTo(nextBar(layout, cursor, arrow[0], arrow[1]));
      else moveTo(firstBar(layout, view.from, view.to, scrollTop));
    } else if (event.key === "+" || event.key === "=") zoom(0.5);
    else if (event.key === "-") zoom(2);
    else if (event.key === "0") change(limits);
    else if (event.key === "n") toNow();
    else if (event.key === "Enter" && cursor) {
      const bar = bars[cursor.bar];
      if (bar) props.onOpen?.(bar);
    } else if (event.key === "Escape") {
      setCursor(null);
      setHover(null);
    }
  };
  const zoom = (factor: number) => {
    const at = now > view.from && now < view.to ? now : (view.from + view.to) / 2;
    change(zoomView(view, at, factor, limits));
  };
  const toNow = () => change(panView(view, now - (view.from + view.to) / 2, limits));

  const shown = hover && bars[hover.hit.bar];
  const row = hover && rows[hover.hit.row];
  return (
    <div className="viz-frame viz-gantt">
      <div className="viz-gantt-head">
        <GanttKey tones={props.keys} />
        <div className="viz-gantt-buttons">
          <button
            type="button"
            className="viz-button"
            onClick={() => zoom(2)}
            aria-label="Zoom out"
          >
            −
          </button>
          <button
            type="button"
            className="viz-button"
            onClick={() => zoom(0.5)}
            aria-label="Zoom in"
          >
            +
          </button>
          <button type="button" className="viz-button" onClick={toNow}>
            Now
          </button>
          <button type="button" className="viz-button" onClick={() => change(limits)}>
            All
          </button>
        </div>
      </div>
      <div className="viz-gantt-body">
        <div
          ref={scroller}
          className="viz-gantt-scroll viz-focus"
          style={{ height }}
          role="application"
          aria-roledescription="Gantt chart"
          aria-label={`${title}. Arrow keys move between bars, Shift with left and right pans, plus and minus zoom, Enter opens.`}
          tabIndex={0}
          onScroll={(e) => setScrollTop(e.currentTarget.scrollTop)}
          onKeyDown={keys}
          onPointerDown={down}
          onPointerMove={move}
          onPointerUp={up}
          onPointerCancel={(e) => fingers.current.delete(e.pointerId)}
          onPointerLeave={() => setHover(null)}
          onBlur={() => {
            setCursor(null);
            setHover(null);
          }}
        >
          <div className="viz-gantt-stage">
            <canvas ref={base} />
            <canvas ref={over} className="viz-over" />
          </div>
          <div style={{ height: AXIS + layout.height }} />
        </div>
        {shown && row && (
          <Tip x={hover.x} y={hover.y}>
            {props.tooltip?.(shown, row) ?? (
              <>
                <div>{shown.label}</div>
                <div className="viz-tip-title">
                  {WORD[shown.kind]} on {row.label}
                </div>
                {momentText(shown.from)} to {shown.to === null ? "now" : momentText(shown.to)}
              </>
            )}
          </Tip>
        )}
      </div>
      <Readout text={spoken} />
      <Numbers title={title} rows={rows} bars={bars} />
    </div>
  );
}

const ARROWS: Record<string, [number, number] | undefined> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

const Numbers = memo(function Numbers(given: Pick<GanttProps, "title" | "rows" | "bars">) {
  const { title } = given;
  const rows = useDeferredValue(given.rows);
  const bars = useDeferredValue(given.bars);
  const most = 200;
  const table = useMemo(() => {
    const names = new Map(rows.map((r) => [r.id, r.label]));
    return bars
      .slice(-most)
      .map((b) => [
        b.label,
        names.get(b.row) ?? b.row,
        WORD[b.kind],
        momentText(b.from),
        b.to === null ? "" : momentText(b.to),
      ]);
  }, [rows, bars]);
  return (
    <HiddenTable
      caption={title}
      head={["Job", "On", "What", "From", "To"]}
      rows={table}
      note={bars.length > most ? `The last ${most} of ${bars.length}` : undefined}
    />
  );
});
