// Lines over time: one y axis, a crosshair shared by the charts of a page, brush to zoom.

import {
  type KeyboardEvent,
  memo,
  useCallback,
  useDeferredValue,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useRedraw, useSize, widest } from "../common/canvas";
import { HiddenTable, Readout, Swatch, Tip } from "../common/parts";
import { clamp, momentText, nearest, niceTicks } from "../common/scale";
import { useInk } from "../common/theme";
import { type BandSeries, type LineSeries, sample } from "./data";
import "./line-chart.css";
import { columnsOf, labelRoom, optionsOf, type PlotInput, rangeOf } from "./plot";

export type { BandSeries, LineSeries } from "./data";

export interface LineChartProps {
  /** What the chart shows, for screen readers: "GPU utilization of job 17". */
  title: string;
  /** Milliseconds, ascending. */
  times: readonly number[];
  series: readonly LineSeries[];
  bands?: readonly BandSeries[] | undefined;
  unit: (value: number) => string;
  height?: number | undefined;
  /** Charts with the same key share the crosshair. */
  syncKey?: string | undefined;
  /** The measuring interval: what is missing for longer is a gap. */
  step?: number | undefined;
  min?: number | undefined;
  max?: number | undefined;
  limit?: { value: number; label: string } | undefined;
  /** What is shown; everything where left out. */
  range?: readonly [number, number] | undefined;
  /** A stretch was brushed. Without it the chart zooms by itself. */
  onZoom?: ((from: number, to: number) => void) | undefined;
  onZoomReset?: (() => void) | undefined;
  legend?: "auto" | "none" | undefined;
}

const NO_BANDS: readonly BandSeries[] = [];

export function LineChart(props: LineChartProps) {
  const { title, times, series, unit, height = 180, syncKey, step, legend = "auto" } = props;
  const bands = props.bands ?? NO_BANDS;
  const ink = useInk();
  const redraw = useRedraw();
  const frame = useRef<HTMLDivElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const { width } = useSize(frame);
  const [own, setOwn] = useState<readonly [number, number] | null>(null);
  const [hover, setHover] = useState<{ index: number; x: number; y: number } | null>(null);
  const [spoken, setSpoken] = useState("");

  const input: PlotInput = {
    times,
    series,
    bands,
    step,
    min: props.min,
    max: props.max,
    limit: props.limit,
  };
  // What uPlot's callbacks read: always the latest, without building the plot anew.
  const latest = useRef({ input, props, own });
  latest.current = { input, props, own };

  const shaped = useMemo(() => columnsOf(input), [times, series, bands, step]);
  const [from, to] = rangeOf(input);
  const labels = Math.max(...niceTicks(from, to, 5).map((v) => widthOf(unit(v), ink.fontSans)), 20);
  const axisRoom = Math.ceil(labels / 8) * 8 + 12;
  const drawn = labelRoom(series, width, height, (text) => widthOf(text, ink.fontSans));
  const shape = [
    ...series.map((s) => `${s.key}:${s.label}:${s.tone}:${s.dashedFrom !== undefined}`),
    "|",
    ...bands.map((b) => `${b.key}:${b.tone}`),
    drawn.labelRoom,
    axisRoom,
    syncKey,
    height,
    redraw,
  ].join();

  const zoom = useCallback((a: number, b: number, here = true) => {
    const { props: now } = latest.current;
    if (!now.onZoom) setOwn([a, b]);
    else if (here) now.onZoom(a, b);
  }, []);
  const reset = useCallback(() => {
    setOwn(null);
    latest.current.props.onZoomReset?.();
  }, []);

  const empty = times.length === 0;
  const ready = width > 0 && !empty;
  useLayoutEffect(() => {
    if (!host.current || !ready) return;
    const made = new uPlot(
      optionsOf({
        plot: () => latest.current.input,
        columns: shaped.columns,
        ink,
        unit: (v) => latest.current.props.unit(v),
        size: { width, height },
        drawn,
        syncKey,
        axisRoom,
        range: () => {
          const { props: now, own: zoomed, input: data } = latest.current;
          const all: [number, number] = [
            data.times[0] ?? 0,
            data.times[data.times.length - 1] ?? 1,
          ];
          const [a, b] = now.range ?? zoomed ?? all;
          return a < b ? [a, b] : [a - 30_000, a + 30_000];
        },
        onCursor: (u) => {
          const index = u.cursor.idx;
          const source = u.cursor.event != null;
          if (index == null || !source || (u.cursor.left ?? -1) < 0) {
            setHover((old) => (old === null ? old : null));
            return;
          }
          const left = (u.cursor.left ?? 0) + u.bbox.left / uPlot.pxRatio;
          const top = (u.cursor.top ?? 0) + u.bbox.top / uPlot.pxRatio;
          setHover({ index, x: left, y: top });
        },
        onBrush: zoom,
        onReset: reset,
      }),
      shaped.data,
      host.current,
    );
    plot.current = made;
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [shape, ink, ready]);

  useEffect(() => {
    plot.current?.setData(shaped.data);
  }, [shaped]);
  useEffect(() => {
    plot.current?.setData(plot.current.data);
  }, [own, props.range?.[0], props.range?.[1], props.min, props.max, props.limit?.value]);
  useEffect(() => {
    if (width > 0) plot.current?.setSize({ width, height });
  }, [width, height]);

  const at = hover ? (shaped.data[0][hover.index] ?? null) : null;
  const where = at === null ? -1 : nearest(times, at);
  const fine = times.length > 1 && (times[1] as number) - (times[0] as number) < 60_000;

  const keys = (event: KeyboardEvent) => {
    if (times.length === 0) return;
    if (event.key === "Escape") {
      setHover(null);
      plot.current?.setCursor({ left: -10, top: -10 });
      if (own || props.range) reset();
      return;
    }
    const last = times.length - 1;
    const now = where >= 0 ? where : last;
    const far = event.shiftKey ? 10 : 1;
    const target: Record<string, number> = {
      ArrowLeft: now - far,
      ArrowRight: now + far,
      Home: 0,
      End: last,
    };
    const next = target[event.key];
    if (next !== undefined) {
      event.preventDefault();
      show(clamp(next, 0, last));
    } else if (event.key === "+" || event.key === "=") zoomBy(now, 0.5);
    else if (event.key === "-") zoomBy(now, 2);
    else if (event.key === "0") reset();
  };

  const zoomBy = (index: number, factor: number) => {
    const all: [number, number] = [times[0] ?? 0, times[times.length - 1] ?? 1];
    const [a, b] = props.range ?? own ?? all;
    const middle = times[index] ?? (a + b) / 2;
    const half = ((b - a) * factor) / 2;
    const left = Math.max(all[0], middle - half);
    const right = Math.min(all[1], middle + half);
    if (left <= all[0] && right >= all[1]) reset();
    else if (right > left) zoom(left, right);
  };

  const show = (index: number) => {
    const u = plot.current;
    const moment = times[index];
    if (!u || moment === undefined) return;
    const left = u.valToPos(moment, "x");
    u.setCursor({ left, top: u.bbox.height / uPlot.pxRatio / 2 });
    setHover({
      index: nearest(shaped.data[0] as number[], moment),
      x: left + u.bbox.left / uPlot.pxRatio,
      y: u.bbox.top / uPlot.pxRatio + 8,
    });
    const values = series.map((s) => {
      const v = s.values[index];
      return `${s.label} ${v === null || v === undefined ? "no data" : unit(v)}`;
    });
    setSpoken(`${momentText(moment, fine)}: ${values.join(", ")}`);
  };

  const rows = where < 0 ? [] : ranked(series, where);
  const named = drawn.labels ? [] : series;
  const showLegend =
    legend === "auto" && !empty && (bands.length > 0 || (named.length > 1 && !drawn.labels));
  return (
    <div
      ref={frame}
      className="viz-frame viz-lines"
      role="group"
      aria-roledescription="chart"
      aria-label={`${title}. Arrow keys read values, plus and minus zoom, Escape resets.`}
      tabIndex={0}
      onKeyDown={keys}
      onBlur={() => setHover(null)}
    >
      <div ref={host} className="viz-lines-host" aria-hidden="true" />
      {empty && (
        <p className="viz-lines-empty" style={{ height }}>
          No data in this time
        </p>
      )}
      {hover && where >= 0 && at !== null && (
        <Tip x={hover.x} y={hover.y}>
          <div className="viz-tip-title">{momentText(at, fine)}</div>
          <div className="viz-tip-rows">
            {rows.slice(0, 12).map(({ series: s, tone, value }) => (
              <TipRow
                key={s.key}
                tone={tone}
                dashed={s.dashedFrom !== undefined && at >= s.dashedFrom}
                label={s.label}
                value={value === null ? "no data" : unit(value)}
              />
            ))}
            {bands.map((b, i) => (
              <TipRow
                key={b.key}
                tone={b.tone ?? i}
                label={b.label}
                value={bandText(b, where, unit)}
              />
            ))}
          </div>
          {rows.length > 12 && <div className="viz-tip-more">and {rows.length - 12} more</div>}
        </Tip>
      )}
      {showLegend && (
        <ul className="viz-legend">
          {named.map((s, i) => (
            <li key={s.key}>
              <Swatch tone={s.tone ?? i} dashed={(s.tone ?? i) >= 8} />
              <span className="viz-cut" title={s.label}>
                {s.label}
              </span>
            </li>
          ))}
          {bands.map((b, i) => (
            <li key={b.key}>
              <span className={`viz-band viz-tone-${((b.tone ?? i) % 8) + 1}`} />
              <span className="viz-cut">{b.label}</span>
            </li>
          ))}
        </ul>
      )}
      <Readout text={spoken} />
      <Numbers title={title} times={times} series={series} unit={unit} fine={fine} />
    </div>
  );
}

function TipRow(p: { tone: number; dashed?: boolean; label: string; value: string }) {
  return (
    <>
      <Swatch tone={p.tone} dashed={p.dashed ?? false} />
      <span>{p.label}</span>
      <span className="viz-number">{p.value}</span>
    </>
  );
}

function bandText(band: BandSeries, index: number, unit: (value: number) => string): string {
  const [low, high] = [band.low[index], band.high[index]];
  return low == null || high == null ? "no data" : `${unit(low)} to ${unit(high)}`;
}

function ranked(series: readonly LineSeries[], index: number) {
  const rows = series.map((s, i) => ({
    series: s,
    tone: s.tone ?? i,
    value: s.values[index] ?? null,
  }));
  if (rows.length > 3) {
    rows.sort(
      (a, b) => (b.value ?? Number.NEGATIVE_INFINITY) - (a.value ?? Number.NEGATIVE_INFINITY),
    );
  }
  return rows;
}

interface NumbersProps {
  title: string;
  times: readonly number[];
  series: readonly LineSeries[];
  unit: (value: number) => string;
  fine: boolean;
}

const Numbers = memo(function Numbers(given: NumbersProps) {
  const { title, unit, fine } = given;
  // Nobody waits for this table: it may lag behind a chart that moves.
  const times = useDeferredValue(given.times);
  const series = useDeferredValue(given.series);
  const { rows, note } = useMemo(() => {
    const picked = sample(times.length, 40);
    return {
      rows: picked.map((i) => [
        momentText(times[i] ?? 0, fine),
        ...series.map((s) => {
          const v = s.values[i];
          return v === null || v === undefined ? "no data" : unit(v);
        }),
      ]),
      note:
        picked.length < times.length ? `${picked.length} of ${times.length} moments` : undefined,
    };
  }, [times, series, unit, fine]);
  return (
    <HiddenTable
      caption={title}
      head={["Time", ...series.map((s) => s.label)]}
      rows={rows}
      note={note}
    />
  );
});

function widthOf(text: string, font: string): number {
  return widest([text], `12px ${font}`);
}
