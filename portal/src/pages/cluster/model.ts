import type { Gpu, Node } from "@/api/types";
import { gpus as gpuText, money, percent, span } from "@/lib/format";
import type { GpuState, MapGpu, MapNode } from "@/viz/heat-map/layout";
import type { Figure } from "@/viz/heat-map/paint";
import type { FIGURES } from "./search";

export type FigureId = (typeof FIGURES)[number];

/** From here on a GPU that is held counts as idle. */
const IDLE_MS = 10 * 60_000;

export function rackOf(node: Pick<Node, "labels">): string {
  const labels = node.labels as Record<string, string>;
  const key = Object.keys(labels).find((name) => /(^|[./])rack$/.test(name));
  return key ? (labels[key] ?? "") : "";
}

export function isIdle(gpu: Gpu): boolean {
  return gpu.holders.length > 0 && (gpu.idle_ms ?? 0) >= IDLE_MS;
}

export function stateOf(gpu: Gpu, node: Node | undefined): GpuState {
  if (!gpu.healthy || gpu.failed || node?.state === "failed") return "failed";
  if (gpu.holders.length > 0) return isIdle(gpu) ? "idle" : "held";
  if (node && node.state !== "ready") return "drained";
  return "free";
}

/** What the map shows first: without any measurement, who has the GPUs says more than hatching. */
export function usual(gpus: readonly Gpu[]): FigureId {
  const held = gpus.some((gpu) => gpu.holders.length > 0);
  return held && gpus.every((gpu) => gpu.utilization == null) ? "team" : "utilization";
}

/** Teams in a fixed order, so that a team keeps its hue while others come and go. */
export function teamsOf(gpus: readonly Gpu[]): string[] {
  return [...new Set(gpus.flatMap((g) => g.holders.map((h) => h.team)))].filter(Boolean).sort();
}

function figureValue(gpu: Gpu, figure: FigureId, now: number): number | null {
  switch (figure) {
    case "utilization":
      return gpu.utilization ?? null;
    case "memory":
      return gpu.used_bytes == null || !gpu.memory_bytes
        ? null
        : (100 * gpu.used_bytes) / gpu.memory_bytes;
    case "power":
      return gpu.watts ?? null;
    case "age": {
      const since = gpu.holders.map((h) => Date.parse(h.since ?? "")).filter((t) => t > 0);
      return since.length > 0 ? (now - Math.min(...since)) / 3_600_000 : null;
    }
    case "free":
      return gpu.free_milli / 10;
    case "team":
      return null;
  }
}

export function mapOf(
  gpus: readonly Gpu[],
  nodes: readonly Node[],
  figure: FigureId,
  teams: readonly string[],
  now: number,
): MapNode[] {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const out = new Map<string, { id: string; name: string; rack: string; gpus: MapGpu[] }>();
  for (const node of nodes)
    out.set(node.name, { id: node.name, name: node.name, rack: rackOf(node), gpus: [] });
  for (const gpu of gpus) {
    const team = gpu.holders[0]?.team;
    out.get(gpu.node)?.gpus.push({
      index: gpu.index,
      state: stateOf(gpu, byName.get(gpu.node)),
      value: figureValue(gpu, figure, now),
      category: team ? teams.indexOf(team) : null,
    });
  }
  return [...out.values()].filter((node) => node.gpus.length > 0);
}

export function figureOf(id: FigureId, gpus: readonly Gpu[], teams: readonly string[]): Figure {
  switch (id) {
    case "utilization":
      return { kind: "scale", label: "Utilization", min: 0, max: 100, format: (v) => percent(v) };
    case "memory":
      return { kind: "scale", label: "Memory in use", min: 0, max: 100, format: (v) => percent(v) };
    case "power": {
      const most = Math.max(400, ...gpus.map((g) => g.watts ?? 0));
      return {
        kind: "scale",
        label: "Power",
        min: 0,
        max: most,
        format: (v) => `${Math.round(v)} W`,
      };
    }
    case "age":
      return {
        kind: "scale",
        label: "Held for",
        min: 0,
        max: 24,
        format: (v) => span(v * 3_600_000),
      };
    case "team":
      return { kind: "category", label: "Team", names: [...teams] };
    case "free":
      return { kind: "free", label: "Free" };
  }
}

export interface Sums {
  all: number;
  held: number;
  free: number;
  out: number;
  idle: number;
  /** What idle GPUs that are held cost an hour. */
  idleMicros: number;
  utilization: number | null;
}

export function sumsOf(gpus: readonly Gpu[], nodes: readonly Node[]): Sums {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const sums: Sums = {
    all: 0,
    held: 0,
    free: 0,
    out: 0,
    idle: 0,
    idleMicros: 0,
    utilization: null,
  };
  let measured = 0;
  let busy = 0;
  for (const gpu of gpus) {
    const state = stateOf(gpu, byName.get(gpu.node));
    sums.all += 1000;
    if (state === "failed" || state === "drained") sums.out += 1000;
    else {
      sums.held += 1000 - gpu.free_milli;
      sums.free += gpu.free_milli;
    }
    if (state === "idle") {
      sums.idle += 1000;
      sums.idleMicros += gpu.price_micros_per_hour;
    }
    if (gpu.utilization != null) {
      measured += 1;
      busy += gpu.utilization;
    }
  }
  if (measured > 0) sums.utilization = busy / measured;
  return sums;
}

/** What is read out, and shown beside the pointer. */
export function words(gpu: Gpu | undefined): string[] {
  if (!gpu) return [];
  const lines = gpu.holders.map(
    (h) =>
      `${h.name || "a job of another team"}${h.team ? `, ${h.team}` : ""}${h.milli < 1000 ? `, ${gpuText(h.milli)} of it` : ""}`,
  );
  if (gpu.failed) lines.push(`failed: ${gpu.failed}`);
  if (gpu.held) lines.push(`held by ${gpu.held}`);
  if (isIdle(gpu))
    lines.push(`idle for ${span(gpu.idle_ms)}, ${money(gpu.price_micros_per_hour)}/h`);
  return lines;
}
