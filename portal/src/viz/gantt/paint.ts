// Draws the rows in sight: bars by their kind, names, the time axis and the line of now.

import { clip, hatch, measurer } from "../common/canvas";
import { cssOf, readable, rgbOf, textOn, tint } from "../common/colour";
import { clamp, tickText, timeTicks } from "../common/scale";
import { type Ink, seriesColour } from "../common/theme";
import {
  type BarHit,
  barsIn,
  type GanttBar,
  type GanttLayout,
  type GanttRow,
  ROW_PAD,
  rowsIn,
  type View,
} from "./layout";

export const AXIS = 26;

type Measure = (text: string) => number;

export interface Stage {
  width: number;
  height: number;
  label: number;
  scrollTop: number;
  view: View;
  now: number;
}

interface Tone {
  solid: string;
  past: string;
  soft: string;
  onSolid: string;
  onPast: string;
  onSoft: string;
}

const tones = new WeakMap<Ink, Map<number, Tone>>();

function toneOf(ink: Ink, index: number): Tone {
  let all = tones.get(ink);
  if (!all) {
    all = new Map();
    tones.set(ink, all);
  }
  let tone = all.get(index % 8);
  if (!tone) {
    // Labels of all series are of one colour; their grounds give way.
    const label = textOn(rgbOf(seriesColour(ink, 0)), ink.theme);
    const solid = cssOf(readable(rgbOf(seriesColour(ink, index)), rgbOf(label)));
    const past = tint(solid, ink.surface, 0.42);
    const soft = tint(solid, ink.surface, 0.1);
    const on = (ground: string) => cssOf(readable(rgbOf(ink.text), rgbOf(ground)));
    tone = {
      solid,
      past,
      soft,
      onSolid: label,
      onPast: on(past),
      onSoft: on(soft),
    };
    all.set(index % 8, tone);
  }
  return tone;
}

export function xOf(stage: Stage, at: number): number {
  const { view, label, width } = stage;
  return label + ((at - view.from) / (view.to - view.from)) * (width - label);
}

export function timeAt(stage: Stage, x: number): number {
  const { view, label, width } = stage;
  return view.from + ((x - label) / Math.max(1, width - label)) * (view.to - view.from);
}

export function paintGantt(
  c: CanvasRenderingContext2D,
  layout: GanttLayout,
  rows: readonly GanttRow[],
  bars: readonly GanttBar[],
  stage: Stage,
  ink: Ink,
): void {
  const { width, height, label, scrollTop, view } = stage;
  c.clearRect(0, 0, width, height);
  const ticks = timeTicks(view.from, view.to, Math.max(2, Math.floor((width - label) / 96)));
  c.fillStyle = ink.line;
  for (const at of ticks.at) c.fillRect(Math.round(xOf(stage, at)), AXIS, 1, height - AXIS);
  const [first, last] = rowsIn(layout, scrollTop, scrollTop + height - AXIS);

  c.save();
  c.beginPath();
  c.rect(label, AXIS, width - label, height - AXIS);
  c.clip();
  c.font = `12px ${ink.fontSans}`;
  c.textBaseline = "middle";
  c.textAlign = "left";
  const pattern = hatch(c, ink.textFaint, 7, 1);
  const measure = measurer(`12px ${ink.fontSans}`);
  for (let row = first; row < last; row++) {
    const place = layout.rows[row];
    if (!place) continue;
    place.lanes.forEach((lane, l) => {
      const y = AXIS + place.top - scrollTop + ROW_PAD / 2 + l * layout.lane;
      const [a, b] = barsIn(lane, view.from, view.to);
      let drawn = Number.NEGATIVE_INFINITY;
      for (let p = a; p < b; p++) {
        const bar = bars[lane.bars[p] as number];
        if (!bar) continue;
        // Of bars that share a pixel, one is enough.
        const right = xOf(stage, Math.min(lane.to[p] as number, view.to));
        if (right < drawn + 0.75 && p > a) continue;
        drawn = Math.max(right, xOf(stage, bar.from) + 1);
        paintBar(c, bar, y + 1, layout.lane - 2, stage, ink, pattern, measure);
      }
    });
  }
  paintNow(c, stage, ink);
  c.restore();
  paintNames(c, layout, rows, first, last, stage, ink);
  paintAxis(c, ticks.at, ticks.step, stage, ink);
}

function paintBar(
  c: CanvasRenderingContext2D,
  bar: GanttBar,
  y: number,
  tall: number,
  stage: Stage,
  ink: Ink,
  pattern: CanvasPattern | string,
  measure: Measure,
): void {
  const tone = toneOf(ink, bar.tone);
  const left = Math.max(xOf(stage, bar.from), stage.label - 4);
  const until =
    bar.kind === "running"
      ? Math.max(bar.from, Math.min(bar.to ?? stage.now, stage.now))
      : (bar.to ?? stage.view.to);
  const right = Math.min(xOf(stage, until), stage.width + 4);
  const wide = Math.max(right - left - 1, 1);
  const h = tall;
  if (bar.kind === "reserved") {
    c.fillStyle = ink.surface2;
    c.fillRect(left, y, wide, h);
    c.fillStyle = pattern;
    c.fillRect(left, y, wide, h);
    c.strokeStyle = ink.textFaint;
    c.lineWidth = 1;
    c.strokeRect(left + 0.5, y + 0.5, Math.max(wide - 1, 0), h - 1);
    if (wide > 40) {
      const text = clip(bar.label, wide - 16, measure);
      if (text) {
        c.fillStyle = ink.surface2;
        c.fillRect(left + 4, y + 2, measure(text) + 8, h - 4);
        write(c, text, left + 8, y + h / 2, ink.textMuted);
      }
    }
    return;
  }
  if (bar.kind === "promised") {
    c.fillStyle = tone.soft;
    c.fillRect(left, y, wide, h);
    c.strokeStyle = tone.solid;
    c.lineWidth = 1;
    c.setLineDash([4, 3]);
    c.strokeRect(left + 0.5, y + 0.5, Math.max(wide - 1, 0), h - 1);
    c.setLineDash([]);
    labelled(c, bar.label, left, wide, y + h / 2, tone.onSoft, stage, measure);
    return;
  }
  if (bar.kind === "past") {
    c.fillStyle = tone.past;
    c.fillRect(left, y, wide, h);
    labelled(c, bar.label, left, wide, y + h / 2, tone.onPast, stage, measure);
    return;
  }
  // What is expected of a running job is outlined, up to where it should end.
  const end = bar.expected ? Math.min(xOf(stage, bar.expected), stage.width + 4) : right;
  if (end > right + 1) {
    c.fillStyle = tone.soft;
    c.fillRect(right, y, end - right - 1, h);
    c.strokeStyle = tone.solid;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(right, y + 0.5);
    c.lineTo(end - 1.5, y + 0.5);
    c.lineTo(end - 1.5, y + h - 0.5);
    c.lineTo(right, y + h - 0.5);
    c.stroke();
  }
  c.fillStyle = tone.solid;
  c.fillRect(left, y, wide, h);
  c.fillStyle = ink.text;
  c.fillRect(left + wide - 2, y, Math.min(3, wide + 1), h);
  labelled(c, bar.label, left, wide - 4, y + h / 2, tone.onSolid, stage, measure);
}

/** The label starts where the bar comes into sight, and ends with the bar. */
function labelled(
  c: CanvasRenderingContext2D,
  text: string,
  left: number,
  wide: number,
  y: number,
  colour: string,
  stage: Stage,
  measure: Measure,
): void {
  if (wide < 26) return;
  const start = Math.max(left, stage.label);
  const cut = clip(text, left + wide - start - 12, measure);
  if (cut) write(c, cut, start + 6, y, colour);
}

function write(c: CanvasRenderingContext2D, text: string, x: number, y: number, colour: string) {
  c.fillStyle = colour;
  c.fillText(text, x, y + 0.5);
}

function paintNow(c: CanvasRenderingContext2D, stage: Stage, ink: Ink): void {
  const x = Math.round(xOf(stage, stage.now));
  if (x < stage.label || x > stage.width) return;
  c.fillStyle = ink.accent;
  c.fillRect(x, AXIS - 4, 1.5, stage.height - AXIS + 4);
}

function paintNames(
  c: CanvasRenderingContext2D,
  layout: GanttLayout,
  rows: readonly GanttRow[],
  first: number,
  last: number,
  stage: Stage,
  ink: Ink,
): void {
  const { width, height, label, scrollTop } = stage;
  c.save();
  c.beginPath();
  c.rect(0, AXIS, width, height - AXIS);
  c.clip();
  c.font = `12px ${ink.fontMono}`;
  const measure = measurer(c.font);
  c.textBaseline = "middle";
  c.textAlign = "left";
  for (let row = first; row < last; row++) {
    const place = layout.rows[row];
    const data = rows[row];
    if (!place || !data) continue;
    const y = AXIS + place.top - scrollTop;
    const changes = row > 0 && rows[row - 1]?.group !== data.group;
    c.fillStyle = changes ? ink.lineStrong : ink.line;
    if (row > 0) c.fillRect(0, Math.round(y), width, 1);
    c.fillStyle = ink.textMuted;
    const middle = clamp(
      AXIS + 10,
      y + layout.lane / 2 + 2,
      y + place.height - layout.lane / 2 - 2,
    );
    c.fillText(clip(data.label, label - 10, measure), 0, middle);
  }
  c.restore();
}

function paintAxis(
  c: CanvasRenderingContext2D,
  at: readonly number[],
  step: number,
  stage: Stage,
  ink: Ink,
): void {
  const { width, label } = stage;
  c.fillStyle = ink.lineStrong;
  c.fillRect(0, AXIS - 1, width, 1);
  c.font = `12px ${ink.fontSans}`;
  c.textBaseline = "middle";
  c.textAlign = "center";
  const measure = measurer(`12px ${ink.fontSans}`);
  const now = xOf(stage, stage.now);
  const shown = now >= label && now <= width;
  for (const t of at) {
    const x = xOf(stage, t);
    const text = tickText(t, step);
    const half = measure(text) / 2;
    if (x - half < label - 8 || x + half > width) continue;
    if (shown && Math.abs(x - now) < half + 22) continue;
    c.fillStyle = ink.textMuted;
    c.fillText(text, x, AXIS / 2 - 1);
  }
  if (!shown) return;
  c.font = `500 12px ${ink.fontSans}`;
  c.fillStyle = ink.accent;
  c.fillText("now", clamp(now, label + 12, width - 12), AXIS / 2 - 1);
}

export function paintCursor(
  c: CanvasRenderingContext2D,
  layout: GanttLayout,
  hit: BarHit,
  stage: Stage,
  colour: string,
  line: number,
): void {
  const place = layout.rows[hit.row];
  const lane = place?.lanes[hit.lane];
  if (!place || !lane) return;
  const left = Math.max(xOf(stage, lane.from[hit.position] as number), stage.label - 4);
  const right = Math.min(xOf(stage, lane.to[hit.position] as number), stage.width + 4);
  const y = AXIS + place.top - stage.scrollTop + ROW_PAD / 2 + hit.lane * layout.lane;
  c.save();
  c.beginPath();
  c.rect(stage.label, AXIS, stage.width - stage.label, stage.height - AXIS);
  c.clip();
  c.strokeStyle = colour;
  c.lineWidth = line;
  c.strokeRect(left - 0.5, y + 0.5, Math.max(right - left, 3), layout.lane - 1);
  c.restore();
}
