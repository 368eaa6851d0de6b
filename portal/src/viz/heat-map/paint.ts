// How a GPU looks on the map: the figure as a colour, its state as a mark.

import { hatch } from "../common/canvas";
import { rampCss, rgbOf, textOn, tint } from "../common/colour";
import { type Ink, seriesColour } from "../common/theme";
import type { GpuState, MapGpu } from "./layout";

export interface ScaleFigure {
  kind: "scale";
  label: string;
  min: number;
  max: number;
  format: (value: number) => string;
}

export interface CategoryFigure {
  kind: "category";
  label: string;
  /** Names in the order of their colours. */
  names: readonly string[];
}

/** Which GPUs are free: the others step back. */
export interface FreeFigure {
  kind: "free";
  label: string;
}

export type Figure = ScaleFigure | CategoryFigure | FreeFigure;

export const STEPS = 64;

const palettes = new WeakMap<Ink, string[]>();

export function heatCss(ink: Ink): string[] {
  let out = palettes.get(ink);
  if (!out) {
    out = rampCss(ink.heat.map(rgbOf), STEPS);
    palettes.set(ink, out);
  }
  return out;
}

/** The step of the ramp for a value, from 0. */
export function stepOf(value: number, min: number, max: number, steps = STEPS): number {
  const part = (value - min) / (max - min || 1);
  return Math.min(steps - 1, Math.max(0, Math.floor(part * steps)));
}

export class CellPainter {
  #c: CanvasRenderingContext2D;
  #ink: Ink;
  #figure: Figure;
  #heat: string[];
  #noData: CanvasPattern | string;
  #held: string;
  constructor(context: CanvasRenderingContext2D, ink: Ink, figure: Figure) {
    this.#c = context;
    this.#ink = ink;
    this.#figure = figure;
    this.#heat = heatCss(ink);
    this.#noData = hatch(context, ink.lineStrong, 5, 1);
    this.#held = tint(ink.textFaint, ink.surface, 0.3);
  }

  cell(gpu: MapGpu, x: number, y: number, size: number): void {
    const { state } = gpu;
    if (state === "failed" || state === "drained") this.cross(state, x, y, size);
    else if (state === "free") this.free(x, y, size);
    else if (state === "unknown") this.hatched(x, y, size);
    else {
      this.#figured(gpu, x, y, size);
      if (state === "idle") this.outline(x, y, size);
    }
  }

  #figured(gpu: MapGpu, x: number, y: number, size: number): void {
    const c = this.#c;
    const figure = this.#figure;
    if (figure.kind === "free") {
      c.fillStyle = this.#held;
      c.fillRect(x, y, size, size);
      return;
    }
    const category = gpu.category;
    if (figure.kind === "category" && category !== null && category !== undefined) {
      c.fillStyle = seriesColour(this.#ink, category);
      c.fillRect(x, y, size, size);
      if (category >= 8) this.#pattern(category, x, y, size);
      return;
    }
    if (figure.kind === "scale" && gpu.value !== null) {
      c.fillStyle = this.#heat[stepOf(gpu.value, figure.min, figure.max)] ?? "";
      c.fillRect(x, y, size, size);
      return;
    }
    this.hatched(x, y, size);
  }

  #pattern(category: number, x: number, y: number, size: number): void {
    const c = this.#c;
    c.fillStyle = hatch(c, textOn(rgbOf(seriesColour(this.#ink, category))), 4, 1);
    c.fillRect(x, y, size, size);
  }

  hatched(x: number, y: number, size: number): void {
    const c = this.#c;
    c.fillStyle = this.#noData;
    c.fillRect(x, y, size, size);
    c.strokeStyle = this.#ink.line;
    c.lineWidth = 1;
    c.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  }

  outline(x: number, y: number, size: number): void {
    const c = this.#c;
    c.strokeStyle = this.#ink.surface;
    c.lineWidth = 1;
    c.strokeRect(x + 2.5, y + 2.5, size - 5, size - 5);
    // Among the colours of teams amber would be one more team.
    c.strokeStyle = this.#figure.kind === "category" ? this.#ink.text : this.#ink.warn;
    c.lineWidth = 2;
    c.strokeRect(x + 1, y + 1, size - 2, size - 2);
  }

  free(x: number, y: number, size: number): void {
    const c = this.#c;
    if (this.#figure.kind === "free") {
      c.fillStyle = this.#ink.good;
      c.fillRect(x, y, size, size);
      return;
    }
    c.strokeStyle = this.#ink.lineStrong;
    c.lineWidth = 1;
    c.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
    c.fillStyle = this.#ink.textFaint;
    const dot = Math.max(2, Math.round(size / 8));
    c.fillRect(x + (size - dot) / 2, y + (size - dot) / 2, dot, dot);
  }

  cross(state: GpuState, x: number, y: number, size: number): void {
    const c = this.#c;
    c.fillStyle = this.#ink.surface2;
    c.fillRect(x, y, size, size);
    c.strokeStyle = state === "failed" ? this.#ink.bad : this.#ink.textFaint;
    c.lineWidth = state === "failed" ? 2 : 1.25;
    const pad = Math.max(2, Math.round(size * 0.22));
    c.beginPath();
    c.moveTo(x + pad, y + pad);
    c.lineTo(x + size - pad, y + size - pad);
    // A drained GPU has one stroke, a failed one two: not told apart by colour alone.
    if (state === "failed") {
      c.moveTo(x + size - pad, y + pad);
      c.lineTo(x + pad, y + size - pad);
    }
    c.stroke();
  }
}

export const STATE_WORD: Record<GpuState, string> = {
  held: "in use",
  idle: "held, but idle",
  free: "free",
  failed: "failed",
  drained: "drained",
  unknown: "no data",
};

/** One GPU in words, for the cursor and the hidden table. */
export function words(gpu: MapGpu, figure: Figure): string {
  if (gpu.state === "free" || gpu.state === "failed" || gpu.state === "drained") {
    return STATE_WORD[gpu.state];
  }
  const idle = gpu.state === "idle" ? ", held, but idle" : "";
  if (figure.kind === "category") {
    const name = gpu.category == null ? null : figure.names[gpu.category];
    return `${name ?? "no data"}${idle}`;
  }
  if (figure.kind === "free") return STATE_WORD[gpu.state];
  return `${gpu.value === null ? "no data" : figure.format(gpu.value)}${idle}`;
}
