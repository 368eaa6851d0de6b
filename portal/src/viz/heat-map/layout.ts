// Where racks, nodes and GPUs stand on the map, and what is under a point. Pure.

export type GpuState = "held" | "idle" | "free" | "failed" | "drained" | "unknown";

export interface MapGpu {
  index: number;
  /** `idle`: held, but nothing runs on it. */
  state: GpuState;
  /** The figure's value; null is no data. */
  value: number | null;
  /** For figures that are categories, such as the team: which one. */
  category?: number | null | undefined;
}

export interface MapNode {
  id: string;
  name: string;
  rack: string;
  gpus: readonly MapGpu[];
}

export interface Rack {
  name: string;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Indexes of its nodes, from top to bottom. */
  nodes: number[];
  /** GPUs of its widest node. */
  across: number;
}

export interface MapLayout {
  racks: Rack[];
  /** Rack and row of each node, where its cells begin, and on how many lines they stand. */
  placeOf: { rack: number; row: number; top: number; lines: number }[];
  /** Cells on a line. */
  per: number;
  width: number;
  height: number;
  pitch: number;
  cell: number;
  label: number;
}

export interface Hit {
  node: number;
  gpu: number;
}

export const HEAD = 20;
const GAP_X = 28;
const GAP_Y = 16;
const MOST_PER_LINE = 32;
/** Between nodes that stand on several lines. */
const GAP_NODES = 6;

/** How many GPUs of a node stand on a line; more of them go on below, in whole eights where there is room. */
function perLine(longest: number, room: number): number {
  const most = Math.min(MOST_PER_LINE, room);
  if (longest <= most) return longest;
  return most >= 8 ? most - (most % 8) : 4;
}

/** Racks flow from left to right in as many columns as fit, the shortest column first. */
export function layoutMap(
  nodes: readonly { rack: string; gpus: { length: number } }[],
  width: number,
  pitch: number,
  label: number,
): MapLayout {
  const byName = new Map<string, number[]>();
  nodes.forEach((node, i) => {
    const list = byName.get(node.rack);
    if (list) list.push(i);
    else byName.set(node.rack, [i]);
  });
  const racks: Rack[] = [];
  const placeOf: MapLayout["placeOf"] = nodes.map(() => ({ rack: 0, row: 0, top: 0, lines: 1 }));
  let longest = 1;
  for (const node of nodes) longest = Math.max(longest, node.gpus.length);
  const across = perLine(longest, Math.floor((width - label) / pitch));
  const linesOf = (node: number) =>
    Math.max(1, Math.ceil((nodes[node]?.gpus.length ?? 0) / across));
  const gap = longest > across ? GAP_NODES : 0;
  const rackWidth = label + across * pitch;
  const columns = Math.max(1, Math.floor((width + GAP_X) / (rackWidth + GAP_X)));
  const bottoms = new Array<number>(Math.min(columns, Math.max(1, byName.size))).fill(0);
  for (const [name, members] of byName) {
    let column = 0;
    for (let c = 1; c < bottoms.length; c++) {
      if ((bottoms[c] as number) < (bottoms[column] as number)) column = c;
    }
    const y = bottoms[column] as number;
    // Without names there is nothing to stand above the cells.
    let height = name === "" && byName.size === 1 ? 0 : HEAD;
    members.forEach((node, row) => {
      const lines = linesOf(node);
      placeOf[node] = { rack: racks.length, row, top: y + height, lines };
      height += lines * pitch + gap;
    });
    height -= gap;
    racks.push({
      name,
      x: column * (rackWidth + GAP_X),
      y,
      width: rackWidth,
      height,
      nodes: members,
      across,
    });
    bottoms[column] = y + height + GAP_Y;
  }
  const height = Math.max(0, ...bottoms) - (racks.length ? GAP_Y : 0);
  return { racks, placeOf, per: across, width, height, pitch, cell: pitch - 2, label };
}

/** The GPU under a point; `gpu` is -1 on a node's name. */
export function hitMap(
  layout: MapLayout,
  nodes: readonly { gpus: { length: number } }[],
  x: number,
  y: number,
): Hit | null {
  for (const rack of layout.racks) {
    if (x < rack.x || x >= rack.x + rack.width || y < rack.y || y >= rack.y + rack.height) continue;
    const node = rack.nodes.findLast((one) => (layout.placeOf[one]?.top ?? 0) <= y);
    const place = node === undefined ? undefined : layout.placeOf[node];
    if (node === undefined || !place) return null;
    const line = Math.floor((y - place.top) / layout.pitch);
    if (line >= place.lines) return null;
    const column = Math.floor((x - rack.x - layout.label) / layout.pitch);
    if (column < 0) return { node, gpu: -1 };
    const gpu = line * layout.per + column;
    return column < layout.per && gpu < (nodes[node]?.gpus.length ?? 0) ? { node, gpu } : null;
  }
  return null;
}

/** Nodes whose rows a rectangle touches. */
export function nodesIn(
  layout: MapLayout,
  a: { x: number; y: number },
  b: { x: number; y: number },
) {
  const [left, right] = [Math.min(a.x, b.x), Math.max(a.x, b.x)];
  const [top, bottom] = [Math.min(a.y, b.y), Math.max(a.y, b.y)];
  const out: number[] = [];
  for (const rack of layout.racks) {
    if (right < rack.x || left > rack.x + rack.width) continue;
    for (const node of rack.nodes) {
      const place = layout.placeOf[node];
      if (!place) continue;
      if (bottom >= place.top && top < place.top + place.lines * layout.pitch) out.push(node);
    }
  }
  return out;
}

export function cellAt(layout: MapLayout, hit: Hit): { x: number; y: number } {
  const place = layout.placeOf[hit.node];
  const rack = layout.racks[place?.rack ?? 0];
  const gpu = Math.max(0, hit.gpu);
  return {
    x: (rack?.x ?? 0) + layout.label + (gpu % layout.per) * layout.pitch,
    y: (place?.top ?? HEAD) + Math.floor(gpu / layout.per) * layout.pitch,
  };
}

/** Where an arrow key leads: within a rack first, then to the rack beside or below. */
export function moveOn(
  layout: MapLayout,
  nodes: readonly { gpus: { length: number } }[],
  from: Hit,
  dx: number,
  dy: number,
): Hit {
  const count = (node: number) => nodes[node]?.gpus.length ?? 0;
  const gpu = from.gpu + dx;
  if (dy === 0 && gpu >= 0 && gpu < count(from.node)) return { node: from.node, gpu };
  const below = from.gpu + dy * layout.per;
  if (dy !== 0 && below >= 0 && below < count(from.node)) return { node: from.node, gpu: below };
  const start = cellAt(layout, from);
  const rack = layout.racks[layout.placeOf[from.node]?.rack ?? 0];
  if (!rack) return from;
  if (dy !== 0) {
    const row = (layout.placeOf[from.node]?.row ?? 0) + dy;
    const next = rack.nodes[row];
    if (next !== undefined) {
      const lines = layout.placeOf[next]?.lines ?? 1;
      const line = dy > 0 ? 0 : lines - 1;
      const gpu = line * layout.per + (from.gpu % layout.per);
      return { node: next, gpu: Math.min(gpu, count(next) - 1) };
    }
  }
  let best: Hit = from;
  let least = Number.POSITIVE_INFINITY;
  for (const other of layout.racks) {
    if (other === rack) continue;
    const beside = dx !== 0 && Math.sign(other.x - rack.x) === Math.sign(dx);
    const above = dy !== 0 && other.x === rack.x && Math.sign(other.y - rack.y) === Math.sign(dy);
    if (!beside && !above) continue;
    for (const node of other.nodes) {
      const y = layout.placeOf[node]?.top ?? 0;
      const far = Math.abs(y - start.y) + Math.abs(other.x - rack.x) * 4;
      if (far >= least || count(node) === 0) continue;
      least = far;
      const at = dx > 0 ? 0 : dx < 0 ? count(node) - 1 : Math.min(from.gpu, count(node) - 1);
      best = { node, gpu: at };
    }
  }
  return best;
}
