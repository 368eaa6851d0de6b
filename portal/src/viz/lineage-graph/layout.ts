// The layout of a layered graph, from left to right. Pure.

import { acyclic, type Link, layersOf } from "./layers";
import { type Columns, ordered } from "./order";
import { spread } from "./place";

export type { Link } from "./layers";

export const NODE = { width: 196, height: 44 } as const;
const GAP = { x: 52, y: 12 } as const;
/** The height of a link that passes a column. */
const LANE = 14;
const ROUNDS = 8;

export interface Place {
  id: string;
  /** Its top left corner. */
  x: number;
  y: number;
  column: number;
}

export interface Path extends Link {
  /** The `d` of an SVG path, from `from` to `to`. */
  d: string;
}

export interface Layout {
  nodes: ReadonlyMap<string, Place>;
  /** Ids by column, from top to bottom. */
  columns: readonly (readonly string[])[];
  paths: readonly Path[];
  width: number;
  height: number;
}

type Point = readonly [x: number, y: number];

function put(into: Map<string, string[]>, key: string, value: string) {
  const list = into.get(key);
  if (list) list.push(value);
  else into.set(key, [value]);
}

/** `links` lead from inputs to outputs. */
export function layout(ids: readonly string[], links: readonly Link[]): Layout {
  const all = [...new Set(ids)];
  const dag = acyclic(all, links);
  const layer = layersOf(all, dag.links);
  const columns: Columns = Array.from(
    { length: Math.max(0, ...[...layer.values()].map((l) => l + 1)) },
    () => [],
  );
  for (const id of all) columns[layer.get(id) ?? 0]?.push(id);

  // A long link has a lane in each column between its ends.
  const left = new Map<string, string[]>();
  const right = new Map<string, string[]>();
  const join = (from: string, to: string) => {
    put(right, from, to);
    put(left, to, from);
  };
  const lanes = dag.links.map(({ from, to }, n) => {
    const passed: string[] = [];
    let last = from;
    for (let c = (layer.get(from) ?? 0) + 1; c < (layer.get(to) ?? 0); c += 1) {
      const lane = `\u0000${n}:${c}`;
      columns[c]?.push(lane);
      passed.push(lane);
      join(last, lane);
      last = lane;
    }
    join(last, to);
    return passed;
  });

  const best = ordered(columns, left, right);
  const middles = placed(best, left, right);
  const top = Math.min(
    ...all.map((id) => (middles.get(id) ?? 0) - NODE.height / 2),
    ...(all.length === 0 ? [0] : []),
  );
  const y = (id: string) => (middles.get(id) ?? 0) - top;
  const x = (column: number) => column * (NODE.width + GAP.x);
  const nodes = new Map<string, Place>();
  for (const id of all) {
    const column = layer.get(id) ?? 0;
    nodes.set(id, { id, column, x: x(column), y: y(id) - NODE.height / 2 });
  }

  const paths = dag.links.map(({ from, to, turned }, n): Path => {
    const points: Point[] = [[x(layer.get(from) ?? 0) + NODE.width, y(from)]];
    (lanes[n] ?? []).forEach((lane, i) => {
      const at = x((layer.get(from) ?? 0) + 1 + i);
      points.push([at, y(lane)], [at + NODE.width, y(lane)]);
    });
    points.push([x(layer.get(to) ?? 0), y(to)]);
    return turned
      ? { from: to, to: from, d: curve([...points].reverse()) }
      : { from, to, d: curve(points) };
  });

  const bottom = Math.max(0, ...[...nodes.values()].map((p) => p.y + NODE.height));
  return {
    nodes,
    columns: best.map((column) => column.filter((id) => nodes.has(id))),
    paths,
    width: columns.length === 0 ? 0 : x(columns.length - 1) + NODE.width,
    height: bottom,
  };
}

/** The middle of each node and lane. */
function placed(
  columns: Columns,
  left: ReadonlyMap<string, readonly string[]>,
  right: ReadonlyMap<string, readonly string[]>,
): Map<string, number> {
  const isLane = (id: string) => id.startsWith("\u0000");
  const room = (id: string) => (isLane(id) ? LANE : NODE.height + GAP.y);
  const at = new Map<string, number>();
  for (const column of columns) {
    const found = spread(column.map((id) => ({ wish: 0, room: room(id), weight: 1 })));
    column.forEach((id, i) => {
      at.set(id, found[i] as number);
    });
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    const there = round % 2 === 0;
    for (const column of there ? columns : [...columns].reverse()) {
      const items = column.map((id) => {
        const near = [...(left.get(id) ?? []), ...(right.get(id) ?? [])];
        const sum = near.reduce((all, n) => all + (at.get(n) ?? 0), 0);
        return {
          wish: near.length > 0 ? sum / near.length : (at.get(id) ?? 0),
          room: room(id),
          // Straighten long links before short ones.
          weight: isLane(id) ? 3 : 1,
        };
      });
      spread(items).forEach((y, i) => {
        at.set(column[i] as string, y);
      });
    }
  }
  return at;
}

const text = (n: number) => String(Math.round(n * 10) / 10);

/** Straight within a column, and S-shaped between columns. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  let d = `M${text(first[0])} ${text(first[1])}`;
  let [x, y] = first;
  for (const [toX, toY] of rest) {
    const middle = (x + toX) / 2;
    d +=
      y === toY
        ? `H${text(toX)}`
        : `C${text(middle)} ${text(y)} ${text(middle)} ${text(toY)} ${text(toX)} ${text(toY)}`;
    x = toX;
    y = toY;
  }
  return d;
}

export type Way = "left" | "right" | "up" | "down" | "first" | "last";

/** The target of an arrow key: along the links of a node, or up and down its column. */
export function step(of: Layout, from: string, way: Way): string | undefined {
  const here = of.nodes.get(from);
  if (!here) return of.columns.find((c) => c.length > 0)?.[0];
  const column = of.columns[here.column] ?? [];
  if (way === "first") return column[0];
  if (way === "last") return column.at(-1);
  if (way === "up" || way === "down") return column[column.indexOf(from) + (way === "up" ? -1 : 1)];
  const linked = of.paths.flatMap((p) =>
    p.from === from ? [p.to] : p.to === from ? [p.from] : [],
  );
  const side = linked
    .flatMap((id) => of.nodes.get(id) ?? [])
    .filter((n) => (way === "left" ? n.x < here.x : n.x > here.x));
  const far = (n: Place) => Math.abs(n.x - here.x) * 10 + Math.abs(n.y - here.y);
  return side.sort((a, b) => far(a) - far(b))[0]?.id;
}
