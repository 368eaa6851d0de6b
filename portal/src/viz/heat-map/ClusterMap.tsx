// All GPUs as they are now: nodes as rows grouped by rack, GPUs as cells.

import {
  type KeyboardEvent,
  memo,
  type PointerEvent,
  type ReactNode,
  useDeferredValue,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { clip, fit, measurer, point, useRedraw, useSize, widest } from "../common/canvas";
import { HiddenTable, Readout, Tip } from "../common/parts";
import { clamp } from "../common/scale";
import { type Ink, useInk } from "../common/theme";
import { HeatLegend } from "./HeatLegend";
import "./heat-map.css";
import {
  cellAt,
  type Hit,
  hitMap,
  layoutMap,
  type MapGpu,
  type MapLayout,
  type MapNode,
  moveOn,
  nodesIn,
} from "./layout";
import { CellPainter, type Figure, words } from "./paint";

export interface MapTarget {
  node: MapNode;
  /** Null on a node's name. */
  gpu: MapGpu | null;
}

export interface ClusterMapProps {
  title: string;
  nodes: readonly MapNode[];
  figure: Figure;
  selected?: ReadonlySet<string> | undefined;
  /** The distance of two cells; smaller ones for many GPUs where left out. */
  pitch?: number | undefined;
  /** What floats beside the pointer or the cursor. */
  tooltip?: ((target: MapTarget) => ReactNode) | undefined;
  /** What is said for a GPU beside node and figure: its job and team. */
  describe?: ((target: MapTarget) => string) | undefined;
  onHover?: ((target: MapTarget | null) => void) | undefined;
  onOpen?: ((target: MapTarget) => void) | undefined;
  /** Nodes were dragged over, or their names clicked; `add` with Shift or Ctrl. */
  onSelect?: ((ids: string[], add: boolean) => void) | undefined;
  legend?: boolean | undefined;
}

interface Drag {
  x: number;
  y: number;
  toX: number;
  toY: number;
  moved: boolean;
}

export function ClusterMap(props: ClusterMapProps) {
  const { nodes, figure, selected, title, legend = true } = props;
  const ink = useInk();
  const redraw = useRedraw();
  const frame = useRef<HTMLDivElement>(null);
  const base = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(frame);
  const gpus = nodes.reduce((sum, node) => sum + node.gpus.length, 0);
  const basic =
    props.pitch ?? (gpus > 1024 ? 14 : gpus > 400 ? 18 : gpus > 64 || width < 480 ? 22 : 28);
  const label = useMemo(
    () => labelWidth(nodes, ink, basic, width),
    [nodes, ink, basic, width, redraw],
  );
  // On a narrow screen there is one column, and cells as large as fingers need within reason.
  const across = Math.max(1, ...nodes.map((n) => n.gpus.length));
  const pitch = width >= 480 ? basic : clamp(Math.floor((width - label) / across), basic, 24);
  const layout = useMemo(() => layoutMap(nodes, width, pitch, label), [nodes, width, pitch, label]);
  const [hover, setHover] = useState<{ hit: Hit; x: number; y: number } | null>(null);
  const [cursor, setCursor] = useState<Hit | null>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const [spoken, setSpoken] = useState("");

  useLayoutEffect(() => {
    const context = base.current && fit(base.current, width, layout.height);
    if (context && width > 0) draw(context, layout, nodes, figure, ink, selected);
  }, [layout, nodes, figure, ink, selected, width, redraw]);

  useLayoutEffect(() => {
    const context = over.current && fit(over.current, width, layout.height);
    if (!context) return;
    context.clearRect(0, 0, width, layout.height);
    if (hover && hover.hit.gpu >= 0) ring(context, layout, hover.hit, ink.text, 1);
    if (cursor) ring(context, layout, cursor, ink.focus, 2);
    if (drag?.moved) {
      const box = [
        Math.min(drag.x, drag.toX) + 0.5,
        Math.min(drag.y, drag.toY) + 0.5,
        Math.abs(drag.x - drag.toX),
        Math.abs(drag.y - drag.toY),
      ] as const;
      context.globalAlpha = 0.14;
      context.fillStyle = ink.accent;
      context.fillRect(...box);
      context.globalAlpha = 1;
      context.strokeStyle = ink.accent;
      context.strokeRect(...box);
    }
  }, [layout, hover, cursor, drag, ink, width, redraw]);

  const target = (hit: Hit): MapTarget | null => {
    const node = nodes[hit.node];
    return node ? { node, gpu: node.gpus[hit.gpu] ?? null } : null;
  };
  const say = (hit: Hit) => {
    const t = target(hit);
    if (!t) return;
    const what = t.gpu
      ? `GPU ${t.gpu.index}: ${words(t.gpu, figure)}`
      : `${t.node.gpus.length} GPUs`;
    const more = props.describe?.(t);
    setSpoken(`${t.node.name}, ${t.node.rack}, ${what}${more ? `, ${more}` : ""}`);
  };
  const pointAt = (hit: Hit | null, x: number, y: number) => {
    if (hit?.node !== hover?.hit.node || hit?.gpu !== hover?.hit.gpu) {
      props.onHover?.(hit ? target(hit) : null);
    }
    setHover(hit ? { hit, x, y } : null);
  };

  const move = (event: PointerEvent<HTMLDivElement>) => {
    if (!base.current) return;
    const { x, y } = point(event, base.current);
    if (drag) {
      const moved = drag.moved || Math.abs(x - drag.x) + Math.abs(y - drag.y) > 5;
      setDrag({ ...drag, toX: x, toY: y, moved });
      if (moved) setHover(null);
      return;
    }
    pointAt(hitMap(layout, nodes, x, y), x, y);
  };
  const down = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0 || !base.current) return;
    const { x, y } = point(event, base.current);
    if (y < 0 || y > layout.height) return;
    // A finger that drags scrolls the page; it selects nodes by their names.
    if (event.pointerType === "mouse" && props.onSelect) {
      event.currentTarget.setPointerCapture(event.pointerId);
    }
    setCursor(null);
    setDrag({ x, y, toX: x, toY: y, moved: false });
  };
  const up = (event: PointerEvent<HTMLDivElement>) => {
    const done = drag;
    setDrag(null);
    if (!done) return;
    const add = event.shiftKey || event.ctrlKey || event.metaKey;
    if (done.moved && props.onSelect) {
      const picked = nodesIn(layout, done, { x: done.toX, y: done.toY });
      props.onSelect(
        picked.flatMap((i) => nodes[i]?.id ?? []),
        add,
      );
      return;
    }
    const hit = done.moved ? null : hitMap(layout, nodes, done.x, done.y);
    const t = hit && target(hit);
    if (!hit || !t) return;
    if (hit.gpu < 0 && props.onSelect) props.onSelect([t.node.id], true);
    else props.onOpen?.(t);
  };

  const keys = (event: KeyboardEvent) => {
    const step = ARROWS[event.key];
    const first = layout.racks[0]?.nodes[0];
    if (first === undefined) return;
    const now = cursor ?? { node: first, gpu: 0 };
    if (step) {
      event.preventDefault();
      const next = cursor ? moveOn(layout, nodes, now, step[0], step[1]) : now;
      setCursor(next);
      say(next);
      const at = cellAt(layout, next);
      pointAt(next, at.x + pitch / 2, at.y + pitch / 2);
      return;
    }
    const t = cursor && target(cursor);
    if (event.key === "Enter" && t) props.onOpen?.(t);
    else if ((event.key === " " || event.key === "x") && t) {
      event.preventDefault();
      props.onSelect?.([t.node.id], true);
    } else if (event.key === "Escape") {
      setCursor(null);
      setHover(null);
    }
  };

  const shown = hover && target(hover.hit);
  const tip = shown && !drag?.moved ? props.tooltip?.(shown) : null;
  return (
    <div
      className="viz-frame viz-map"
      role="group"
      aria-roledescription="heat map"
      aria-label={title}
    >
      <div
        ref={frame}
        className="viz-map-area viz-focus"
        role="application"
        aria-label={`${title}. Arrow keys move, Enter opens the job, Space selects the node.`}
        tabIndex={0}
        onKeyDown={keys}
        onPointerMove={move}
        onPointerDown={down}
        onPointerUp={up}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => !drag && pointAt(null, 0, 0)}
        onBlur={() => {
          setCursor(null);
          setHover(null);
        }}
      >
        <canvas ref={base} />
        <canvas ref={over} className="viz-over" />
        {tip && hover && (
          <Tip x={hover.x} y={hover.y}>
            {tip}
          </Tip>
        )}
      </div>
      {legend && <HeatLegend figure={figure} nodes={nodes} />}
      <Readout text={spoken} />
      <Numbers title={title} nodes={nodes} figure={figure} />
    </div>
  );
}

const ARROWS: Record<string, [number, number] | undefined> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

const Numbers = memo(function Numbers(given: {
  title: string;
  nodes: readonly MapNode[];
  figure: Figure;
}) {
  const { title, figure } = given;
  const nodes = useDeferredValue(given.nodes);
  const most = 200;
  const across = Math.max(0, ...nodes.map((n) => n.gpus.length));
  const rows = useMemo(
    () =>
      nodes.slice(0, most).map((n) => [n.name, n.rack, ...n.gpus.map((gpu) => words(gpu, figure))]),
    [nodes, figure],
  );
  return (
    <HiddenTable
      caption={`${title}: ${figure.label}`}
      head={["Node", "Rack", ...Array.from({ length: across }, (_, i) => `GPU ${i}`)]}
      rows={rows}
      note={nodes.length > most ? `The first ${most} of ${nodes.length} nodes` : undefined}
    />
  );
});

function labelWidth(nodes: readonly MapNode[], ink: Ink, pitch: number, width: number): number {
  const most = widest(
    nodes.map((node) => node.name),
    nameFont(ink, pitch),
  );
  return Math.ceil(Math.min(Math.max(most, 24), width < 480 ? 84 : 112)) + 12;
}

function nameFont(ink: Ink, pitch: number): string {
  return `${pitch < 16 ? 11 : 12}px ${ink.fontMono}`;
}

/** Draws the whole map. The bench calls it too. */
export function draw(
  c: CanvasRenderingContext2D,
  layout: MapLayout,
  nodes: readonly MapNode[],
  figure: Figure,
  ink: Ink,
  selected: ReadonlySet<string> | undefined,
): void {
  c.clearRect(0, 0, layout.width, layout.height);
  const painter = new CellPainter(c, ink, figure);
  const { pitch, cell, label } = layout;
  const heads = measurer(`500 12px ${ink.fontSans}`);
  const names = measurer(nameFont(ink, pitch));
  c.textBaseline = "middle";
  for (const rack of layout.racks) {
    c.font = `500 12px ${ink.fontSans}`;
    c.fillStyle = ink.textMuted;
    c.textAlign = "left";
    c.fillText(clip(rack.name, rack.width, heads), rack.x, rack.y + 8);
    c.font = nameFont(ink, pitch);
    for (const index of rack.nodes) {
      const node = nodes[index];
      const place = layout.placeOf[index];
      if (!node || !place) continue;
      const y = place.top;
      const tall = place.lines * pitch;
      const picked = selected?.has(node.id);
      if (picked) {
        c.fillStyle = ink.accentSoft;
        c.fillRect(rack.x, y - 1, rack.width, tall);
        c.fillStyle = ink.accent;
        c.fillRect(rack.x, y - 1, 2, tall);
      }
      const down = node.gpus.length > 0 && node.gpus.every((g) => g.state === "failed");
      c.fillStyle = down ? ink.bad : picked ? ink.text : ink.textMuted;
      c.fillText(clip(node.name, label - 10, names), rack.x + (picked ? 6 : 0), y + cell / 2 + 0.5);
      node.gpus.forEach((gpu, i) => {
        const line = Math.floor(i / layout.per);
        painter.cell(gpu, rack.x + label + (i % layout.per) * pitch, y + line * pitch, cell);
      });
    }
  }
}

function ring(
  c: CanvasRenderingContext2D,
  layout: MapLayout,
  hit: Hit,
  colour: string,
  width: number,
): void {
  const at = cellAt(layout, hit);
  c.strokeStyle = colour;
  c.lineWidth = width;
  const grow = width / 2 + 0.5;
  c.strokeRect(at.x - grow, at.y - grow, layout.cell + 2 * grow, layout.cell + 2 * grow);
}
