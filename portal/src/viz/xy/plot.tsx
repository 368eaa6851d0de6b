// The canvas of a chart with two numeric axes, and what stands around it.

import {
  type CanvasHTMLAttributes,
  type DependencyList,
  type KeyboardEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useRef,
} from "react";
import { fit, useRedraw, useSize } from "../common/canvas";
import { Tip } from "../common/parts";
import { type Ink, useInk } from "../common/theme";
import { place } from "./axis";
import { type Box, boxOf, paintFrame, type Sides } from "./frame";
import "./xy.css";

export interface Painted {
  ink: Ink;
  /** Where the values are drawn. */
  box: Box;
  /** The positions of values in pixels. */
  px: (value: number) => number;
  py: (value: number) => number;
}

export interface Plot extends Omit<Painted, "box"> {
  frame: RefObject<HTMLDivElement | null>;
  canvas: RefObject<HTMLCanvasElement | null>;
  /** Undefined until the width is known. */
  box: Box | undefined;
}

/** Draws the axes, and then calls `paint`, whenever something of `drawn` or the size changes. */
export function usePlot(
  xs: Sides,
  ys: Sides,
  height: number,
  paint: ((g: CanvasRenderingContext2D, plot: Painted) => void) | undefined,
  drawn: DependencyList,
): Plot {
  const ink = useInk();
  const redraw = useRedraw();
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(frame);
  const box = width > 0 ? boxOf(width, height, ys, ink) : undefined;
  const px = (v: number) => (box ? place(xs.axis, v, box.left, box.right) : 0);
  const py = (v: number) => (box ? place(ys.axis, v, box.bottom, box.top) : 0);
  const { from, to, log } = xs.axis;
  useEffect(() => {
    const g = canvas.current && box && paint ? fit(canvas.current, width, height) : null;
    if (!g || !box) return;
    g.clearRect(0, 0, width, height);
    paintFrame(g, ink, { width, height }, box, xs, ys);
    paint?.(g, { ink, box, px, py });
  }, [...drawn, from, to, log, ys.axis, xs.title, ys.title, width, height, ink, redraw]);
  return { frame, canvas, ink, box, px, py };
}

/** The chart as one stop of the keyboard: its canvas, or a sentence where there is nothing to draw. */
export function PlotFrame({
  plot,
  title,
  help,
  height,
  empty,
  keys,
  onLeave,
  pointer,
  children,
}: {
  plot: Plot;
  /** The label of the chart for screen readers. */
  title: string;
  /** What the keys do. */
  help: string;
  height: number;
  /** Why there is nothing to draw. */
  empty: string | undefined;
  keys: (e: KeyboardEvent) => void;
  onLeave: () => void;
  pointer: CanvasHTMLAttributes<HTMLCanvasElement>;
  children: ReactNode;
}) {
  return (
    <div
      ref={plot.frame}
      className="viz-frame viz-xy"
      role="group"
      aria-roledescription="chart"
      aria-label={`${title}. ${help}`}
      tabIndex={0}
      onKeyDown={(e) => empty === undefined && keys(e)}
      onBlur={onLeave}
    >
      {empty !== undefined ? (
        <p className="viz-xy-empty" style={{ height }}>
          {empty}
        </p>
      ) : (
        <canvas {...pointer} ref={plot.canvas} aria-label={title} role="img" style={{ height }} />
      )}
      {children}
    </div>
  );
}

/** A point with its values beside it. */
export function Mark({
  x,
  y,
  colour,
  children,
}: {
  /** In pixels. */
  x: number;
  y: number;
  colour: string;
  children: ReactNode;
}) {
  return (
    <>
      <span className="viz-xy-dot" style={{ left: x, top: y, color: colour }} />
      <Tip x={x} y={y}>
        {children}
      </Tip>
    </>
  );
}
