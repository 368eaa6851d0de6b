// How uPlot is asked to draw: axes, lines, bands, labels at line ends.

import uPlot from "uplot";
import { tint } from "../common/colour";
import { niceTicks, spread, tickText, timeTicks } from "../common/scale";
import { type Ink, seriesColour } from "../common/theme";
import {
  type BandSeries,
  extent,
  type LineSeries,
  lastValue,
  splitForecast,
  withGaps,
} from "./data";

export interface PlotInput {
  times: readonly number[];
  series: readonly LineSeries[];
  bands: readonly BandSeries[];
  step: number | undefined;
  min: number | undefined;
  max: number | undefined;
  limit: { value: number; label: string } | undefined;
}

export interface Column {
  kind: "line" | "dashed" | "low" | "high";
  of: number;
}

/** The columns in the order in which uPlot has its series, and their numbers. */
export function columnsOf(input: PlotInput): { data: uPlot.AlignedData; columns: Column[] } {
  const columns: Column[] = [];
  const values: (readonly (number | null)[])[] = [];
  input.bands.forEach((band, of) => {
    columns.push({ kind: "high", of }, { kind: "low", of });
    values.push(band.high, band.low);
  });
  input.series.forEach((series, of) => {
    if (series.dashedFrom === undefined) {
      columns.push({ kind: "line", of });
      values.push(series.values);
      return;
    }
    const parts = splitForecast(input.times, series.values, series.dashedFrom);
    columns.push({ kind: "line", of }, { kind: "dashed", of });
    values.push(parts.solid, parts.dashed);
  });
  const out = withGaps(input.times, values, input.step);
  return { data: [out.times, ...out.columns] as uPlot.AlignedData, columns };
}

export function rangeOf(input: PlotInput): [number, number] {
  const all = [
    ...input.series.map((s) => s.values),
    ...input.bands.flatMap((b) => [b.low, b.high]),
    ...(input.limit ? [[input.limit.value]] : []),
  ];
  const [low, high] = extent(all) ?? [0, 1];
  const from = input.min ?? Math.min(0, low);
  const to = input.max ?? (high > from ? high : from + 1);
  if (input.min !== undefined && input.max !== undefined) return [from, to];
  const ticks = niceTicks(from, to, 5);
  return [input.min ?? ticks[0] ?? from, input.max ?? ticks[ticks.length - 1] ?? to];
}

export interface Drawn {
  labels: boolean;
  labelRoom: number;
}

/** Whether labels at line ends fit, and how wide they are. */
export function labelRoom(
  series: readonly LineSeries[],
  width: number,
  height: number,
  widthOf: (text: string) => number,
): Drawn {
  if (series.length === 0 || width < 480) return { labels: false, labelRoom: 0 };
  const room = Math.ceil(Math.max(...series.map((s) => widthOf(s.label)))) + 22;
  const fits = series.length * 16 <= height - 40 && room <= width * 0.24;
  return { labels: fits, labelRoom: fits ? room : 0 };
}

export interface OptionInput {
  plot: () => PlotInput;
  columns: readonly Column[];
  ink: Ink;
  unit: (value: number) => string;
  size: { width: number; height: number };
  drawn: Drawn;
  syncKey: string | undefined;
  range: () => [number, number];
  onCursor: (plot: uPlot) => void;
  onBrush: (from: number, to: number, here: boolean) => void;
  onReset: () => void;
  axisRoom: number;
}

export function optionsOf(o: OptionInput): uPlot.Options {
  const { ink } = o;
  const font = `12px ${ink.fontSans}`;
  const first = o.plot();
  const series: uPlot.Series[] = [
    {},
    ...o.columns.map((column): uPlot.Series => {
      const own = column.kind === "line" || column.kind === "dashed";
      const tone = own
        ? (first.series[column.of]?.tone ?? column.of)
        : (first.bands[column.of]?.tone ?? column.of);
      const stroke = seriesColour(ink, tone);
      if (!own) return { stroke: "transparent", width: 0, points: { show: false } };
      return {
        stroke,
        width: 1.5,
        points: { show: onlyPoints, size: 4, fill: stroke, stroke },
        ...(column.kind === "dashed" ? { dash: [5, 4] } : tone >= 8 ? { dash: [8, 3, 2, 3] } : {}),
      };
    }),
  ];
  const bands: uPlot.Band[] = first.bands.map((band, i) => ({
    series: [i * 2 + 1, i * 2 + 2],
    fill: tint(seriesColour(ink, band.tone ?? i), ink.surface, 0.22),
  }));
  return {
    width: o.size.width,
    height: o.size.height,
    ms: 1,
    padding: [10, o.drawn.labels ? o.drawn.labelRoom : 12, 0, 0],
    legend: { show: false },
    series,
    bands,
    scales: {
      x: { time: true, range: () => o.range() },
      y: { range: () => rangeOf(o.plot()) },
    },
    axes: [
      {
        stroke: ink.textMuted,
        font,
        size: 26,
        gap: 6,
        grid: { show: false },
        ticks: { stroke: ink.lineStrong, width: 1, size: 4 },
        splits: (_u, _axis, from, to) => timeTicks(from, to, most(o.size.width)).at,
        values: (u, splits) => {
          const [from, to] = [u.scales.x?.min ?? 0, u.scales.x?.max ?? 1];
          const { step } = timeTicks(from, to, most(o.size.width));
          return splits.map((at) => tickText(at, step));
        },
      },
      {
        stroke: ink.textMuted,
        font,
        size: o.axisRoom,
        gap: 8,
        grid: { stroke: ink.line, width: 1 },
        ticks: { show: false },
        splits: (_u, _axis, from, to) => niceTicks(from, to, 5).filter((v) => v >= from && v <= to),
        values: (_u, splits) => splits.map((v) => o.unit(v)),
      },
    ],
    cursor: {
      x: true,
      y: false,
      points: { size: 7 },
      drag: { x: true, y: false, setScale: false, dist: 6 },
      bind: {
        dblclick: () => () => {
          o.onReset();
          return null;
        },
      },
      ...(o.syncKey ? { sync: { key: o.syncKey, setSeries: false, scales: ["x", null] } } : {}),
    },
    hooks: {
      setCursor: [o.onCursor],
      setSelect: [
        (u) => {
          if (u.select.width < 4) return;
          const from = u.posToVal(u.select.left, "x");
          const to = u.posToVal(u.select.left + u.select.width, "x");
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          // Charts that share a crosshair share the brush; only one of them was brushed.
          o.onBrush(from, to, u.cursor.event != null);
        },
      ],
      draw: [(u) => drawLimit(u, o), (u) => o.drawn.labels && drawLabels(u, o)],
    },
  };
}

function most(width: number): number {
  return Math.max(2, Math.floor((width - 60) / 84));
}

/** A value with gaps on both sides would not be seen as a line. */
function onlyPoints(u: uPlot, index: number, from: number, to: number): boolean {
  const values = u.data[index];
  if (!values || to - from > 400) return false;
  for (let i = from; i <= to; i++) {
    if (values[i] != null && values[i - 1] == null && values[i + 1] == null) return true;
  }
  return false;
}

function drawLimit(u: uPlot, o: OptionInput): void {
  const { limit } = o.plot();
  if (!limit) return;
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  const y = Math.round(u.valToPos(limit.value, "y", true));
  if (y < bbox.top || y > bbox.top + bbox.height) return;
  ctx.save();
  ctx.strokeStyle = o.ink.warn;
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.fillStyle = o.ink.warn;
  ctx.font = `${12 * ratio}px ${o.ink.fontSans}`;
  ctx.textAlign = "left";
  ctx.textBaseline = y - bbox.top < 18 * ratio ? "top" : "bottom";
  ctx.fillText(
    limit.label,
    bbox.left + 4 * ratio,
    y + (ctx.textBaseline === "top" ? 3 : -2) * ratio,
  );
  ctx.restore();
}

function drawLabels(u: uPlot, o: OptionInput): void {
  const { ctx, bbox } = u;
  const ratio = uPlot.pxRatio;
  const wanted: { label: string; colour: string; dashed: boolean; y: number; x: number }[] = [];
  o.plot().series.forEach((series, i) => {
    const end = lastValue(series.values);
    if (!end) return;
    const at = o.plot().times[end.index] ?? 0;
    wanted.push({
      label: series.label,
      colour: seriesColour(o.ink, series.tone ?? i),
      dashed: series.dashedFrom !== undefined,
      x: u.valToPos(at, "x", true),
      y: u.valToPos(end.value, "y", true),
    });
  });
  const half = 7 * ratio;
  const places = spread(
    wanted.map((w) => w.y),
    15 * ratio,
    bbox.top + half - 4 * ratio,
    bbox.top + bbox.height - half + 6 * ratio,
  );
  if (!places) return;
  const edge = bbox.left + bbox.width;
  ctx.save();
  ctx.font = `${12 * ratio}px ${o.ink.fontSans}`;
  ctx.textAlign = "left";
  ctx.textBaseline = "middle";
  wanted.forEach((w, i) => {
    const y = places[i] ?? w.y;
    ctx.strokeStyle = w.colour;
    ctx.lineWidth = 1.5 * ratio;
    ctx.beginPath();
    // A line to a label that lies far from its value would look like data that falls.
    const near = Math.abs(w.x - edge) < 3 * ratio && Math.abs(w.y - y) < 6 * ratio;
    ctx.moveTo(edge + (near ? 2 : 4) * ratio, near ? w.y : y);
    ctx.lineTo(edge + 12 * ratio, y);
    ctx.stroke();
    ctx.fillStyle = o.ink.textMuted;
    ctx.fillText(w.label, edge + 16 * ratio, y + 0.5 * ratio);
  });
  ctx.restore();
}
