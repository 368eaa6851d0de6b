// What the colours and marks of a heat map mean; only marks that are on the map.

import { useLayoutEffect, useRef } from "react";
import { fit, useRedraw } from "../common/canvas";
import { useInk } from "../common/theme";
import type { GpuState, MapNode } from "./layout";
import { CellPainter, type Figure, heatCss, STATE_WORD, STEPS } from "./paint";

const NO_NODES: readonly MapNode[] = [];

export interface HeatLegendProps {
  figure: Figure;
  /** Counts the marks of these nodes, ... */
  nodes?: readonly MapNode[] | undefined;
  /** ... or explains these. */
  marks?: readonly GpuState[] | undefined;
}

export function HeatLegend({ figure, nodes = NO_NODES, marks: given }: HeatLegendProps) {
  const counts = new Map<GpuState, number>(given?.map((state) => [state, 0]));
  const categories = new Map<number, number>();
  for (const node of nodes) {
    for (const gpu of node.gpus) {
      counts.set(gpu.state, (counts.get(gpu.state) ?? 0) + 1);
      if (gpu.category != null && (gpu.state === "held" || gpu.state === "idle")) {
        categories.set(gpu.category, (categories.get(gpu.category) ?? 0) + 1);
      }
    }
  }
  const marks: GpuState[] = ["idle", "free", "drained", "failed", "unknown"];
  return (
    <ul className="viz-legend viz-map-legend">
      {figure.kind === "scale" && (
        <li>
          <span className="viz-number">{figure.format(figure.min)}</span>
          <Ramp />
          <span className="viz-number">{figure.format(figure.max)}</span>
          <span>{figure.label}</span>
        </li>
      )}
      {figure.kind === "category" &&
        figure.names.map((name, i) =>
          categories.has(i) ? (
            <li key={name}>
              <Mark figure={figure} state="held" category={i} />
              <span className="viz-cut">{name}</span>
              <span className="viz-number viz-faint">{categories.get(i)}</span>
            </li>
          ) : null,
        )}
      {figure.kind === "free" && counts.has("held") && (
        <li>
          <Mark figure={figure} state="held" />
          {STATE_WORD.held} <span className="viz-number viz-faint">{counts.get("held")}</span>
        </li>
      )}
      {marks.map((state) =>
        counts.has(state) ? (
          <li key={state}>
            <Mark figure={figure} state={state} />
            {STATE_WORD[state]}
            {!given && <span className="viz-number viz-faint">{counts.get(state)}</span>}
          </li>
        ) : null,
      )}
    </ul>
  );
}

function Ramp() {
  const ref = useRef<HTMLCanvasElement>(null);
  const ink = useInk();
  useLayoutEffect(() => {
    const c = ref.current && fit(ref.current, 96, 10);
    if (!c) return;
    heatCss(ink).forEach((colour, i) => {
      c.fillStyle = colour;
      c.fillRect((i * 96) / STEPS, 0, 96 / STEPS + 0.5, 10);
    });
  }, [ink]);
  return <canvas ref={ref} />;
}

function Mark(p: { figure: Figure; state: GpuState; category?: number }) {
  const ref = useRef<HTMLCanvasElement>(null);
  const ink = useInk();
  const redraw = useRedraw();
  const { figure, state, category } = p;
  useLayoutEffect(() => {
    const c = ref.current && fit(ref.current, 14, 14);
    if (!c) return;
    c.clearRect(0, 0, 14, 14);
    const painter = new CellPainter(c, ink, figure);
    const value = figure.kind === "scale" ? figure.min : null;
    painter.cell({ index: 0, state, value, category: category ?? 0 }, 0, 0, 14);
  }, [ink, figure, state, category, redraw]);
  return <canvas ref={ref} />;
}
