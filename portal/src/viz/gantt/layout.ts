// Rows, lanes and bars of the Gantt chart, and what is under a point. Pure.

import { lowerBound, upperBound } from "../common/scale";

export type BarKind = "past" | "running" | "promised" | "reserved";

export interface GanttRow {
  id: string;
  label: string;
  /** A rule is drawn where the group changes: the rack, or the node of GPUs. */
  group?: string | undefined;
}

export interface GanttBar {
  id: string;
  /** The row's id. */
  row: string;
  from: number;
  /** Null is open: until now where it runs, without end otherwise. */
  to: number | null;
  kind: BarKind;
  label: string;
  /** Which of the eight hues: of the team, or of the job. */
  tone: number;
  /** Where it runs: when it is expected to end. */
  expected?: number | null | undefined;
}

/** Bars of one lane: they do not overlap, so both starts and ends ascend. */
export interface Lane {
  bars: Uint32Array;
  from: Float64Array;
  to: Float64Array;
}

export interface RowPlace {
  top: number;
  height: number;
  lanes: Lane[];
}

export interface GanttLayout {
  rows: RowPlace[];
  tops: Float64Array;
  height: number;
  lane: number;
  from: number;
  to: number;
}

export const ROW_PAD = 4;

export function endOf(bar: GanttBar, now: number): number {
  if (bar.kind === "running") return Math.max(bar.from, bar.to ?? now, bar.expected ?? 0);
  return bar.to ?? Number.POSITIVE_INFINITY;
}

export function layoutGantt(
  rows: readonly GanttRow[],
  bars: readonly GanttBar[],
  now: number,
  lane: number,
): GanttLayout {
  const index = new Map<string, number>();
  rows.forEach((row, i) => {
    index.set(row.id, i);
  });
  const members: number[][] = rows.map(() => []);
  let from = Number.POSITIVE_INFINITY;
  let to = now;
  bars.forEach((bar, i) => {
    const row = index.get(bar.row);
    if (row === undefined) return;
    members[row]?.push(i);
    from = Math.min(from, bar.from);
    const end = endOf(bar, now);
    if (Number.isFinite(end)) to = Math.max(to, end);
  });
  const places: RowPlace[] = [];
  const tops = new Float64Array(rows.length);
  let top = 0;
  members.forEach((list, row) => {
    const lanes = pack(list, bars, now);
    const height = Math.max(1, lanes.length) * lane + ROW_PAD;
    places.push({ top, height, lanes });
    tops[row] = top;
    top += height;
  });
  return { rows: places, tops, height: top, lane, from: Math.min(from, now), to };
}

/** Each bar goes to the first lane that is free at its start. */
function pack(list: number[], bars: readonly GanttBar[], now: number): Lane[] {
  list.sort((a, b) => (bars[a]?.from ?? 0) - (bars[b]?.from ?? 0) || a - b);
  const lanes: number[][] = [];
  const ends: number[] = [];
  for (const i of list) {
    const bar = bars[i];
    if (!bar) continue;
    let lane = ends.findIndex((end) => end <= bar.from);
    if (lane < 0) {
      lane = lanes.length;
      lanes.push([]);
      ends.push(0);
    }
    lanes[lane]?.push(i);
    ends[lane] = endOf(bar, now);
  }
  return lanes.map((members) => ({
    bars: Uint32Array.from(members),
    from: Float64Array.from(members, (i) => bars[i]?.from ?? 0),
    to: Float64Array.from(members, (i) => (bars[i] ? endOf(bars[i], now) : 0)),
  }));
}

/** Rows that a stretch of the page shows: from the first to before the second. */
export function rowsIn(layout: GanttLayout, top: number, bottom: number): [number, number] {
  if (layout.rows.length === 0) return [0, 0];
  const first = Math.max(0, upperBound(layout.tops, top) - 1);
  return [first, Math.min(layout.rows.length, lowerBound(layout.tops, bottom))];
}

/** Positions in a lane whose bars touch a stretch of time. */
export function barsIn(lane: Lane, from: number, to: number): [number, number] {
  return [upperBound(lane.to, from), lowerBound(lane.from, to)];
}

export interface BarHit {
  row: number;
  lane: number;
  position: number;
  bar: number;
}

/** The bar at a time and a height; `slack` is what a few pixels are in time, for thin bars. */
export function hitGantt(layout: GanttLayout, at: number, y: number, slack: number): BarHit | null {
  if (y < 0 || y >= layout.height || layout.rows.length === 0) return null;
  const row = upperBound(layout.tops, y) - 1;
  const place = layout.rows[row];
  if (!place) return null;
  const lane = Math.floor((y - place.top - ROW_PAD / 2) / layout.lane);
  const found = place.lanes[lane];
  if (!found) return null;
  const position = upperBound(found.from, at + slack) - 1;
  for (const p of [position, position - 1]) {
    if (p < 0) continue;
    const [from, to] = [found.from[p] as number, found.to[p] as number];
    if (at >= from - slack && at <= to + slack) {
      return { row, lane, position: p, bar: found.bars[p] as number };
    }
  }
  return null;
}

/** Where an arrow key leads from a bar: along its row, or to the nearest in time above or below. */
export function nextBar(layout: GanttLayout, at: BarHit, dx: number, dy: number): BarHit | null {
  const here = layout.rows[at.row]?.lanes[at.lane];
  if (!here) return null;
  if (dx !== 0) {
    const position = at.position + dx;
    const bar = here.bars[position];
    return bar === undefined ? null : { ...at, position, bar };
  }
  const middle = here.from[at.position] as number;
  let row = at.row;
  let lane = at.lane + dy;
  for (;;) {
    const lanes = layout.rows[row]?.lanes;
    if (!lanes) return null;
    const found = lanes[lane];
    if (found && found.bars.length > 0) {
      const position = Math.max(0, upperBound(found.from, middle) - 1);
      return { row, lane, position, bar: found.bars[position] as number };
    }
    row += dy;
    lane = dy > 0 ? 0 : (layout.rows[row]?.lanes.length ?? 1) - 1;
    if (row < 0 || row >= layout.rows.length) return null;
  }
}

/** The first bar of a view, for a keyboard that has no cursor yet. */
export function firstBar(
  layout: GanttLayout,
  from: number,
  to: number,
  top: number,
): BarHit | null {
  const [start] = rowsIn(layout, top, layout.height);
  for (let row = start; row < layout.rows.length; row++) {
    const lanes = layout.rows[row]?.lanes ?? [];
    for (let lane = 0; lane < lanes.length; lane++) {
      const l = lanes[lane] as Lane;
      const [a, b] = barsIn(l, from, to);
      if (a < b) return { row, lane, position: a, bar: l.bars[a] as number };
    }
  }
  return null;
}

export interface View {
  from: number;
  to: number;
}

const LEAST_SPAN = 60_000;

/** The view made `factor` times as long, with `at` staying where it is. */
export function zoomView(view: View, at: number, factor: number, limits: View): View {
  const most = (limits.to - limits.from) * 1.5;
  const span = Math.min(
    Math.max((view.to - view.from) * factor, LEAST_SPAN),
    Math.max(most, LEAST_SPAN),
  );
  const part = (at - view.from) / (view.to - view.from || 1);
  return keep({ from: at - part * span, to: at + (1 - part) * span }, limits);
}

export function panView(view: View, by: number, limits: View): View {
  return keep({ from: view.from + by, to: view.to + by }, limits);
}

/** Some of the data stays in sight. */
function keep(view: View, limits: View): View {
  const span = view.to - view.from;
  const slack = span * 0.5;
  const from = Math.min(Math.max(view.from, limits.from - slack), limits.to + slack - span);
  return { from, to: from + span };
}
