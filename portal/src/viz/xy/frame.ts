// Margins, grid and axes of numeric charts.

import { clip, measurer, widest } from "../common/canvas";
import type { Ink } from "../common/theme";
import { type Axis, place, ticksOf } from "./axis";

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Sides {
  axis: Axis;
  title: string;
  text: (value: number) => string;
}

const TITLE = 20;

/** The area of the plot between its axes. */
export function boxOf(width: number, height: number, y: Sides, ink: Ink): Box {
  const ticks = ticksOf(y.axis, rowsIn(height));
  const room = Math.ceil(widest(ticks.map(y.text), `12px ${ink.fontSans}`));
  return {
    left: Math.min(width * 0.4, Math.max(28, room) + 14),
    top: TITLE + 4,
    right: width - 14,
    bottom: height - 24 - TITLE,
  };
}

function rowsIn(height: number): number {
  return Math.max(3, Math.floor(height / 48));
}

/** Draws the grid with its labels. `place` gives the positions of values. */
export function paintFrame(
  g: CanvasRenderingContext2D,
  ink: Ink,
  size: { width: number; height: number },
  box: Box,
  x: Sides,
  y: Sides,
): void {
  const font = `12px ${ink.fontSans}`;
  const widthOf = measurer(font);
  g.font = font;
  g.lineWidth = 1;
  g.textBaseline = "middle";
  g.textAlign = "right";
  for (const tick of ticksOf(y.axis, rowsIn(size.height))) {
    const at = Math.round(place(y.axis, tick, box.bottom, box.top)) + 0.5;
    g.strokeStyle = ink.line;
    g.beginPath();
    g.moveTo(box.left, at);
    g.lineTo(box.right, at);
    g.stroke();
    g.fillStyle = ink.textMuted;
    g.fillText(y.text(tick), box.left - 8, at);
  }
  g.textBaseline = "top";
  g.textAlign = "center";
  let free = 0;
  for (const tick of ticksOf(x.axis, Math.max(2, Math.floor((box.right - box.left) / 90)))) {
    const at = place(x.axis, tick, box.left, box.right);
    const text = x.text(tick);
    const half = widthOf(text) / 2;
    g.strokeStyle = ink.lineStrong;
    g.beginPath();
    g.moveTo(Math.round(at) + 0.5, box.bottom);
    g.lineTo(Math.round(at) + 0.5, box.bottom + 4);
    g.stroke();
    const middle = Math.min(Math.max(at, half + 2), size.width - half - 2);
    if (middle - half < free) continue;
    free = middle + half + 8;
    g.fillStyle = ink.textMuted;
    g.fillText(text, middle, box.bottom + 7);
  }
  g.strokeStyle = ink.lineStrong;
  g.beginPath();
  g.moveTo(box.left, box.bottom + 0.5);
  g.lineTo(box.right, box.bottom + 0.5);
  g.stroke();
  g.fillStyle = ink.textMuted;
  g.textAlign = "left";
  g.fillText(clip(y.title, size.width - 8, widthOf), 2, 2);
  g.textAlign = "right";
  g.textBaseline = "bottom";
  g.fillText(clip(x.title, size.width - 8, widthOf), box.right, size.height - 2);
}
