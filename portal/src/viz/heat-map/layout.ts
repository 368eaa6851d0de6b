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
  /** Rack and row of each node. */
  placeOf: { rack: number; row: number }[];
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
  const placeOf: MapLayout["placeOf"] = nodes.map(() => ({ rack: 0, row: 0 }));
  let across = 1;
  for (const node of nodes) across = Math.max(across, node.gpus.length);
  const rackWidth = label + across * pitch;
  const columns = Math.max(1, Math.floor((width + GAP_X) / (rackWidth + GAP_X)));
  const bottoms = new Array<number>(Math.min(columns, Math.max(1, byName.size))).fill(0);
  for (const [name, members] of byName) {
    let column = 0;
    for (let c = 1; c < bottoms.length; c++) {
      if ((bottoms[c] as number) < (bottoms[column] as number)) column = c;
    }
    const y = bottoms[column] as number;
    const height = HEAD + members.length * pitch;
    members.forEach((node, row) => {
      placeOf[node] = { rack: racks.length, row };
    });
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
  return { racks, placeOf, width, height, pitch, cell: pitch - 2, label };
}

/** The GPU under a point; `gpu` is -1 on a node's name. */
export function hitMap(
  layout: MapLayout,
  nodes: readonly { gpus: { length: number } }[],
  x: number,
  y: number,
): Hit | null {
  for (const rack of layout.racks) {
    if (x < rack.x || x >= rack.x + rack.width || y < rack.y + HEAD || y >= rack.y + rack.height) {
      continue;
    }
    const node = rack.nodes[Math.floor((y - rack.y - HEAD) / layout.pitch)];
    if (node === undefined) return null;
    const gpu = Math.floor((x - rack.x - layout.label) / layout.pitch);
    if (gpu < 0) return { node, gpu: -1 };
    return gpu < (nodes[node]?.gpus.length ?? 0) ? { node, gpu } : null;
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
    rack.nodes.forEach((node, row) => {
      const y = rack.y + HEAD + row * layout.pitch;
      if (bottom >= y && top < y + layout.pitch) out.push(node);
    });
  }
  return out;
}

export function cellAt(layout: MapLayout, hit: Hit): { x: number; y: number } {
  const place = layout.placeOf[hit.node] ?? { rack: 0, row: 0 };
  const rack = layout.racks[place.rack];
  return {
    x: (rack?.x ?? 0) + layout.label + hit.gpu * layout.pitch,
    y: (rack?.y ?? 0) + HEAD + place.row * layout.pitch,
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
  const start = cellAt(layout, from);
  const rack = layout.racks[layout.placeOf[from.node]?.rack ?? 0];
  if (!rack) return from;
  if (dy !== 0) {
    const row = (layout.placeOf[from.node]?.row ?? 0) + dy;
    const next = rack.nodes[row];
    if (next !== undefined) return { node: next, gpu: Math.min(from.gpu, count(next) - 1) };
  }
  let best: Hit = from;
  let least = Number.POSITIVE_INFINITY;
  for (const other of layout.racks) {
    if (other === rack) continue;
    const beside = dx !== 0 && Math.sign(other.x - rack.x) === Math.sign(dx);
    const above = dy !== 0 && other.x === rack.x && Math.sign(other.y - rack.y) === Math.sign(dy);
    if (!beside && !above) continue;
    other.nodes.forEach((node, row) => {
      const y = other.y + HEAD + row * layout.pitch;
      const far = Math.abs(y - start.y) + Math.abs(other.x - rack.x) * 4;
      if (far >= least || count(node) === 0) return;
      least = far;
      const at = dx > 0 ? 0 : dx < 0 ? count(node) - 1 : Math.min(from.gpu, count(node) - 1);
      best = { node, gpu: at };
    });
  }
  return best;
}
