// Draws GPUs by time: pixels first, then names, hatching, outlines and the time axis.

import { clip, hatch, measurer } from "../common/canvas";
import { pixel, ramp, rgbOf } from "../common/colour";
import { tickText, timeTicks } from "../common/scale";
import type { Ink } from "../common/theme";
import type { ScaleFigure } from "./paint";
import { FLAG_DOWN, FLAG_IDLE, type Raster, rasterize, runs } from "./raster";

export interface TimeRow {
  node: string;
  gpu: number;
}

export interface TimeView {
  width: number;
  height: number;
  scrollTop: number;
  label: number;
  rowHeight: number;
}

export const AXIS = 24;

const palettes = new WeakMap<Ink, Uint32Array>();

function paletteOf(ink: Ink): Uint32Array {
  let out = palettes.get(ink);
  if (!out) {
    out = ramp(ink.heat.map(rgbOf), 256);
    palettes.set(ink, out);
  }
  return out;
}

/** Holds the pixels between redraws, so that scrolling only copies. */
export class TimePainter {
  #sheet = document.createElement("canvas");
  #image: ImageData | null = null;
  #pixels: Uint32Array = new Uint32Array(0);
  #done: readonly unknown[] = [];
  #gaps = true;

  fill(raster: Raster, figure: ScaleFigure, ink: Ink): void {
    const wanted = [raster.values, raster.flags, figure.min, figure.max, ink];
    if (wanted.every((x, i) => x === this.#done[i])) return;
    this.#done = wanted;
    this.refill(raster, figure, ink);
  }

  refill(raster: Raster, figure: ScaleFigure, ink: Ink): void {
    const { rows, columns } = raster;
    if (rows === 0 || columns === 0) return;
    const c = this.#sheet.getContext("2d");
    if (!c) return;
    if (!this.#image || this.#image.width !== columns || this.#image.height !== rows) {
      this.#sheet.width = columns;
      this.#sheet.height = rows;
      this.#image = new ImageData(columns, rows);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
    }
    const down = pixel(rgbOf(ink.surface2));
    this.#gaps = rasterize(raster, paletteOf(ink), figure.min, figure.max, down, this.#pixels);
    c.putImageData(this.#image, 0, 0);
  }

  paint(
    c: CanvasRenderingContext2D,
    raster: Raster,
    rows: readonly TimeRow[],
    from: number,
    step: number,
    view: TimeView,
    ink: Ink,
  ): void {
    const { width, height, label, rowHeight, scrollTop } = view;
    const plot = { x: label, y: AXIS, w: width - label, h: height - AXIS };
    c.clearRect(0, 0, width, height);
    const first = Math.floor(scrollTop / rowHeight);
    const last = Math.min(raster.rows, Math.ceil((scrollTop + plot.h) / rowHeight));
    const top = plot.y + first * rowHeight - scrollTop;
    const tall = (last - first) * rowHeight;
    c.save();
    c.beginPath();
    c.rect(0, plot.y, width, plot.h);
    c.clip();
    if (tall > 0 && raster.columns > 0) {
      if (this.#gaps) {
        c.fillStyle = hatch(c, ink.lineStrong, 5, 1);
        c.fillRect(plot.x, top, plot.w, tall);
      }
      c.imageSmoothingEnabled = false;
      c.drawImage(this.#sheet, 0, first, raster.columns, last - first, plot.x, top, plot.w, tall);
    }
    const cell = plot.w / Math.max(1, raster.columns);
    this.#marks(c, raster, first, last, view, cell, ink);
    this.#names(c, rows, first, last, view, ink);
    c.restore();
    this.#axis(c, from, from + step * raster.columns, plot, ink);
  }

  #marks(
    c: CanvasRenderingContext2D,
    raster: Raster,
    first: number,
    last: number,
    view: TimeView,
    cell: number,
    ink: Ink,
  ): void {
    const y = (row: number) => AXIS + row * view.rowHeight - view.scrollTop;
    const crossed = view.rowHeight >= 6;
    const arm = Math.min(4, view.rowHeight / 3);
    c.strokeStyle = ink.bad;
    c.fillStyle = ink.bad;
    c.lineWidth = 1.5;
    c.beginPath();
    for (const run of runs(raster, FLAG_DOWN, first, last)) {
      const middle = y(run.row) + view.rowHeight / 2;
      const [left, right] = [view.label + run.from * cell, view.label + run.to * cell];
      if (!crossed) {
        c.fillRect(left, Math.floor(middle), right - left, 1);
        continue;
      }
      const count = Math.max(1, Math.floor((right - left) / 24));
      for (let i = 0; i < count; i++) {
        const x = left + ((i + 0.5) * (right - left)) / count;
        c.moveTo(x - arm, middle - arm);
        c.lineTo(x + arm, middle + arm);
        c.moveTo(x + arm, middle - arm);
        c.lineTo(x - arm, middle + arm);
      }
    }
    c.stroke();
    // An outline needs room; in lower rows idle is as dark as nothing done is anyway.
    if (view.rowHeight < 6) return;
    c.strokeStyle = ink.warn;
    c.lineWidth = 1.5;
    c.beginPath();
    for (const run of runs(raster, FLAG_IDLE, first, last)) {
      const x = view.label + run.from * cell;
      c.rect(x + 0.75, y(run.row) + 0.75, (run.to - run.from) * cell - 1.5, view.rowHeight - 1.5);
    }
    c.stroke();
  }

  #names(
    c: CanvasRenderingContext2D,
    rows: readonly TimeRow[],
    first: number,
    last: number,
    view: TimeView,
    ink: Ink,
  ): void {
    c.font = `12px ${ink.fontMono}`;
    const measure = measurer(c.font);
    c.textBaseline = "middle";
    c.textAlign = "left";
    let start = first;
    while (start > 0 && rows[start - 1]?.node === rows[first]?.node) start--;
    let bottom = Number.NEGATIVE_INFINITY;
    while (start < last) {
      const node = rows[start]?.node ?? "";
      let end = start + 1;
      while (end < rows.length && rows[end]?.node === node) end++;
      const y = AXIS + start * view.rowHeight - view.scrollTop;
      const tall = (end - start) * view.rowHeight;
      c.fillStyle = ink.surface;
      if (start > 0 && tall >= 8) c.fillRect(view.label, y - 0.5, view.width - view.label, 1);
      // The name stays in sight while its rows scroll by.
      const middle = Math.max(y + Math.min(tall, 16) / 2, AXIS + 8);
      if (middle - 7 >= bottom && (tall >= 12 || middle - 14 >= bottom)) {
        c.fillStyle = ink.textMuted;
        c.fillText(clip(node, view.label - 10, measure), 0, middle);
        bottom = middle + 7;
      }
      start = end;
    }
  }

  #axis(
    c: CanvasRenderingContext2D,
    from: number,
    to: number,
    plot: { x: number; y: number; w: number; h: number },
    ink: Ink,
  ): void {
    const ticks = timeTicks(from, to, Math.max(2, Math.floor(plot.w / 90)));
    c.font = `12px ${ink.fontSans}`;
    const measure = measurer(c.font);
    c.textBaseline = "middle";
    c.strokeStyle = ink.lineStrong;
    c.lineWidth = 1;
    for (const at of ticks.at) {
      const x = Math.round(plot.x + ((at - from) / (to - from)) * plot.w) + 0.5;
      const text = tickText(at, ticks.step);
      const half = measure(text) / 2;
      c.textAlign = "center";
      c.fillStyle = ink.textMuted;
      c.fillText(text, Math.min(Math.max(x, plot.x + half), plot.x + plot.w - half), AXIS / 2 - 2);
      c.beginPath();
      c.moveTo(x, AXIS - 5);
      c.lineTo(x, AXIS - 1);
      c.stroke();
    }
  }
}
