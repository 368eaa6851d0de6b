// A lineage drawn from left to right, with pan, zoom, and arrow keys along the links.

import { Maximize, Minus, Plus } from "lucide-react";
import {
  type KeyboardEvent,
  memo,
  type PointerEvent,
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { Button } from "@/design";
import { useSize } from "../common/canvas";
import "../common/viz.css";
import "./lineage-graph.css";
import { type Layout, type Link, layout, NODE, step, type Way } from "./layout";
import { moved, opening, fitted as seenWhole, showing, type View, zoomed } from "./view";

export interface GraphNode {
  id: string;
  /** Its kind, in a word. */
  kind: string;
  name: string;
  /** Its most important detail, such as its cost. */
  note?: string | undefined;
  /** The colour of its kind. */
  tone: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;
}

export interface LineageGraphProps {
  /** The label for screen readers. */
  label: string;
  nodes: readonly GraphNode[];
  /** From the input to the output. */
  links: readonly Link[];
  /** The start of the lineage. */
  root?: string | undefined;
  chosen?: string | undefined;
  onChoose: (id: string) => void;
}

const WAYS: Record<string, Way> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
  Home: "first",
  End: "last",
};
const STEP = 1.25;

export function LineageGraph({ label, nodes, links, root, chosen, onChoose }: LineageGraphProps) {
  const frame = useRef<HTMLDivElement>(null);
  const size = useSize(frame);
  const drawn = useMemo(
    () =>
      layout(
        nodes.map((n) => n.id),
        links,
      ),
    [nodes, links],
  );
  const lit = useMemo(() => litBy(drawn, chosen), [drawn, chosen]);
  const [view, setView] = useState<View>();
  const [focus, setFocus] = useState<string>();
  const keys = useId();

  // Initially shows the whole graph, or its start. Resizing the window does not move the graph.
  const ready = size.width > 0 && size.height > 0;
  const shown = useRef<Layout>(undefined);
  useLayoutEffect(() => {
    if (!ready || shown.current === drawn) return;
    shown.current = drawn;
    const at = drawn.nodes.get(chosen ?? root ?? "");
    const middle = at
      ? { x: at.x + NODE.width / 2, y: at.y + NODE.height / 2 }
      : { x: drawn.width / 2, y: drawn.height / 2 };
    setView(opening(drawn, size, middle));
  }, [ready, drawn, size, root, chosen]);

  const zoom = (by: number) =>
    setView((v) => v && zoomed(v, by, { x: size.width / 2, y: size.height / 2 }));
  const fit = () => setView(seenWhole(drawn, size));

  // React's wheel listener is passive, so it cannot prevent scrolling.
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const onWheel = (e: WheelEvent) => {
      e.preventDefault();
      const box = element.getBoundingClientRect();
      const frameSize = { width: box.width, height: box.height };
      setView((v) => {
        if (!v) return v;
        if (!e.ctrlKey && !e.metaKey)
          return moved(
            v,
            e.shiftKey ? -e.deltaY : -e.deltaX,
            e.shiftKey ? 0 : -e.deltaY,
            drawn,
            frameSize,
          );
        const by = Math.exp(-e.deltaY * 0.005);
        return zoomed(v, by, { x: e.clientX - box.left, y: e.clientY - box.top });
      });
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [drawn]);

  const drag = useDrag(setView, drawn, size);

  const goTo = (id: string | undefined) => {
    const at = id === undefined ? undefined : drawn.nodes.get(id);
    if (!at) return;
    setFocus(at.id);
    setView((v) => v && showing(v, { ...at, ...NODE }, size));
    frame.current?.querySelector<SVGGElement>(`[data-node="${CSS.escape(at.id)}"]`)?.focus({
      preventScroll: true,
    });
  };
  const onKey = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const node = (e.target as Element).closest("[data-node]")?.getAttribute("data-node");
    const way = WAYS[e.key];
    if (way && node) goTo(step(drawn, node, way));
    else if ((e.key === "Enter" || e.key === " ") && node) onChoose(node);
    else if (e.key === "+" || e.key === "=") zoom(STEP);
    else if (e.key === "-") zoom(1 / STEP);
    else if (e.key === "0") fit();
    else return;
    e.preventDefault();
  };

  // Tab focuses one node; the arrow keys move to the others.
  const known = (id: string | undefined) => (id && drawn.nodes.has(id) ? id : undefined);
  const stop = known(focus) ?? known(chosen) ?? known(root) ?? drawn.columns[0]?.[0];
  const order = useMemo(() => {
    const byId = new Map(nodes.map((n) => [n.id, n]));
    return drawn.columns.flatMap((column) => column.flatMap((id) => byId.get(id) ?? []));
  }, [drawn, nodes]);

  return (
    <div className="viz-frame viz-lineage">
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it is dragged with a pointer; keys have buttons */}
      <div
        ref={frame}
        className="viz-lineage-frame"
        onKeyDown={onKey}
        {...drag}
        data-drawn={view ? "" : undefined}
      >
        <svg width="100%" height="100%" role="group" aria-label={label} aria-describedby={keys}>
          <g
            transform={view && `translate(${view.x} ${view.y}) scale(${view.k})`}
            visibility={view ? undefined : "hidden"}
          >
            {drawn.paths.map((p) => (
              <path
                key={`${p.from}\n${p.to}`}
                d={p.d}
                className={lit?.has(`${p.from}\n${p.to}`) ? "viz-lineage-lit" : undefined}
              />
            ))}
            {order.map((node) => (
              <Node
                key={node.id}
                node={node}
                x={drawn.nodes.get(node.id)?.x ?? 0}
                y={drawn.nodes.get(node.id)?.y ?? 0}
                root={node.id === root}
                chosen={node.id === chosen}
                lit={lit === undefined || lit.has(node.id)}
                stop={node.id === stop}
                onChoose={onChoose}
                onFocus={goTo}
              />
            ))}
          </g>
        </svg>
      </div>
      <p id={keys} className="viz-hidden">
        Left is what things were made from, right what was made from them. Arrow keys go along the
        links, Enter shows details, plus and minus zoom, zero shows all.
      </p>
      <div className="viz-lineage-tools">
        <Button look="quiet" size="sm" icon={Plus} iconOnly keys="+" onClick={() => zoom(STEP)}>
          Zoom in
        </Button>
        <Button
          look="quiet"
          size="sm"
          icon={Minus}
          iconOnly
          keys="-"
          onClick={() => zoom(1 / STEP)}
        >
          Zoom out
        </Button>
        <Button look="quiet" size="sm" icon={Maximize} iconOnly keys="0" onClick={fit}>
          Show all
        </Button>
      </div>
    </div>
  );
}

const Node = memo(function Node({
  node,
  x,
  y,
  root,
  chosen,
  lit,
  stop,
  onChoose,
  onFocus,
}: {
  node: GraphNode;
  x: number;
  y: number;
  root: boolean;
  chosen: boolean;
  lit: boolean;
  stop: boolean;
  onChoose: (id: string) => void;
  onFocus: (id: string) => void;
}) {
  const names = ["viz-lineage-node", `viz-lineage-tone-${node.tone}`];
  if (root) names.push("viz-lineage-root");
  if (chosen) names.push("viz-lineage-chosen");
  if (!lit) names.push("viz-lineage-away");
  const under = [node.kind, node.note].filter(Boolean).join(" · ");
  return (
    <g
      role="button"
      tabIndex={stop ? 0 : -1}
      aria-pressed={chosen}
      data-node={node.id}
      transform={`translate(${x} ${y})`}
      className={names.join(" ")}
      onClick={() => onChoose(node.id)}
      onFocus={(e) => e.target.matches(":focus-visible") && onFocus(node.id)}
    >
      <title>
        {[`${node.kind} ${node.name}`, node.note, root && "start of the lineage"]
          .filter(Boolean)
          .join(", ")}
      </title>
      <rect className="viz-lineage-box" width={NODE.width} height={NODE.height} rx={6} />
      <rect
        className="viz-lineage-stripe"
        x={5}
        y={7}
        width={3}
        height={NODE.height - 14}
        rx={1.5}
      />
      {/* Clips text at the edge of the box. */}
      <svg
        x={16}
        y={0}
        width={NODE.width - 24}
        height={NODE.height}
        overflow="hidden"
        aria-hidden="true"
      >
        <text y={19} className="viz-lineage-name">
          {isolated(short(node.name, 25))}
        </text>
        <text y={35} className="viz-lineage-kind">
          {isolated(short(under, 29))}
        </text>
      </svg>
    </g>
  );
});

/** Isolates the text direction of user text. */
const isolated = (text: string) => `\u2068${text}\u2069`;

/** Truncate in the middle: the end of a path or version is more useful. */
function short(text: string, most: number): string {
  const letters = [...text];
  if (letters.length <= most) return text;
  const tail = Math.floor(most / 3);
  return `${letters.slice(0, most - tail - 1).join("")}…${letters.slice(-tail).join("")}`;
}

/** The ancestors and descendants of the chosen node, with their links. */
function litBy(of: Layout, chosen: string | undefined): ReadonlySet<string> | undefined {
  if (chosen === undefined || !of.nodes.has(chosen)) return undefined;
  const out = new Set([chosen]);
  for (const [from, to] of [
    ["from", "to"],
    ["to", "from"],
  ] as const) {
    const beside = new Map<string, string[]>();
    for (const p of of.paths) {
      const list = beside.get(p[from]);
      if (list) list.push(p[to]);
      else beside.set(p[from], [p[to]]);
    }
    const seen = new Set([chosen]);
    const next = [chosen];
    for (let id = next.pop(); id !== undefined; id = next.pop()) {
      for (const other of beside.get(id) ?? []) {
        out.add(from === "from" ? `${id}\n${other}` : `${other}\n${id}`);
        if (seen.has(other)) continue;
        seen.add(other);
        out.add(other);
        next.push(other);
      }
    }
  }
  return out;
}

type SetView = (change: (view: View | undefined) => View | undefined) => void;

/** One finger or the mouse pans; two fingers also zoom. */
function useDrag(setView: SetView, drawing: Layout, size: { width: number; height: number }) {
  const down = useRef(new Map<number, { x: number; y: number }>());
  const travelled = useRef(0);
  return {
    onPointerDown: (e: PointerEvent<HTMLElement>) => {
      if (e.pointerType === "mouse" && e.button !== 0) return;
      down.current.set(e.pointerId, { x: e.clientX, y: e.clientY });
      travelled.current = 0;
    },
    onPointerMove: (e: PointerEvent<HTMLElement>) => {
      const before = down.current.get(e.pointerId);
      if (!before) return;
      const now = { x: e.clientX, y: e.clientY };
      const [dx, dy] = [now.x - before.x, now.y - before.y];
      travelled.current += Math.abs(dx) + Math.abs(dy);
      // Ignore small movements during a click.
      if (travelled.current < 4) return;
      if (!e.currentTarget.hasPointerCapture(e.pointerId))
        e.currentTarget.setPointerCapture(e.pointerId);
      const other = [...down.current].find(([id]) => id !== e.pointerId)?.[1];
      down.current.set(e.pointerId, now);
      if (!other) {
        setView((v) => v && moved(v, dx, dy, drawing, size));
        return;
      }
      const box = e.currentTarget.getBoundingClientRect();
      const apart = (p: { x: number; y: number }) => Math.hypot(p.x - other.x, p.y - other.y);
      const middle = { x: (now.x + other.x) / 2 - box.left, y: (now.y + other.y) / 2 - box.top };
      const by = apart(now) / Math.max(1, apart(before));
      setView((v) => v && moved(zoomed(v, by, middle), dx / 2, dy / 2, drawing, size));
    },
    onPointerUp: (e: PointerEvent<HTMLElement>) => void down.current.delete(e.pointerId),
    onPointerCancel: (e: PointerEvent<HTMLElement>) => void down.current.delete(e.pointerId),
    onClickCapture: (e: React.MouseEvent) => {
      if (travelled.current < 4) return;
      // The end of a drag must not count as a click.
      travelled.current = 0;
      e.stopPropagation();
    },
  };
}
