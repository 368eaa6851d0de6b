// Made-up clusters, jobs and logs for looking at the charts and for measuring them.

import type { GanttBar, GanttRow } from "../gantt/layout";
import type { GpuState, MapNode } from "../heat-map/layout";
import { FLAG_DOWN, FLAG_IDLE, type Raster } from "../heat-map/raster";
import type { TimeRow } from "../heat-map/time-paint";
import type { LogLine } from "../log-view/store";

/** The same numbers for the same seed: mulberry32. */
export function random(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = a;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export const TEAMS = [
  "nlp",
  "vision",
  "speech",
  "rl",
  "infra",
  "search",
  "bio",
  "robotics",
  "maps",
  "ads",
];
const JOBS = [
  "llama-70b",
  "vit-l",
  "sft-mix-v3",
  "rlhf-abl",
  "eval",
  "whisper-xl",
  "diffusion",
  "embed",
  "protein-fold",
];

const pick = <T>(list: readonly T[], r: number): T => list[Math.floor(r * list.length)] as T;

export function cluster(nodes: number, seed = 7): MapNode[] {
  const next = random(seed);
  return Array.from({ length: nodes }, (_, n) => {
    const rack = Math.floor(n / 8) + 1;
    const kind = next();
    const state: GpuState =
      kind < 0.03 ? "failed" : kind < 0.06 ? "drained" : kind < 0.09 ? "unknown" : "held";
    const team = Math.floor(next() * TEAMS.length);
    const busy = next();
    return {
      id: `n${n}`,
      name: `gpu-${String(rack).padStart(2, "0")}-${String((n % 8) + 1).padStart(2, "0")}`,
      rack: `rack ${rack}`,
      gpus: Array.from({ length: 8 }, (_, index) => {
        const r = next();
        const own: GpuState =
          state !== "held"
            ? state
            : busy < 0.12
              ? "free"
              : r < 0.05
                ? "idle"
                : r < 0.1
                  ? "free"
                  : "held";
        const value = own === "held" ? 0.45 + 0.55 * next() : own === "idle" ? 0.01 : null;
        return {
          index,
          state: own,
          value,
          category:
            own === "held" || own === "idle" ? (r < 0.7 ? team : (team + 1) % TEAMS.length) : null,
        };
      }),
    };
  });
}

export function overTime(
  gpus: number,
  columns: number,
  seed = 3,
): { raster: Raster; rows: TimeRow[] } {
  const next = random(seed);
  const values = new Float32Array(gpus * columns);
  const flags = new Uint8Array(gpus * columns);
  for (let g = 0; g < gpus; g++) {
    let level = next();
    let mode = 0;
    for (let c = 0; c < columns; c++) {
      if (next() < 0.03) {
        level = 0.3 + next() * 0.7;
        const r = next();
        mode = r < 0.12 ? FLAG_IDLE : r < 0.14 ? FLAG_DOWN : r < 0.18 ? 4 : 0;
      }
      const i = g * columns + c;
      values[i] =
        mode === 4
          ? Number.NaN
          : mode === FLAG_IDLE
            ? 0.01
            : Math.min(1, level * (0.9 + next() * 0.2));
      flags[i] = mode === 4 ? 0 : mode;
    }
  }
  const rows = Array.from({ length: gpus }, (_, g) => ({
    node: `gpu-${String(Math.floor(g / 64) + 1).padStart(2, "0")}-${String((Math.floor(g / 8) % 8) + 1).padStart(2, "0")}`,
    gpu: g % 8,
  }));
  return { raster: { rows: gpus, columns, values, flags }, rows };
}

export function bars(
  rows: number,
  count: number,
  now: number,
  seed = 11,
): { rows: GanttRow[]; bars: GanttBar[] } {
  const next = random(seed);
  const hour = 3_600_000;
  const list: GanttRow[] = Array.from({ length: rows }, (_, n) => ({
    id: `n${n}`,
    label: `gpu-${String(Math.floor(n / 8) + 1).padStart(2, "0")}-${String((n % 8) + 1).padStart(2, "0")}`,
    group: `rack ${Math.floor(n / 8) + 1}`,
  }));
  const out: GanttBar[] = [];
  const each = Math.ceil(count / rows);
  for (const row of list) {
    let at = now - 24 * hour * (0.9 + next() * 0.2);
    const mean = (36 * hour) / each;
    for (let i = 0; i < each && out.length < count; i++) {
      const long = mean * (0.25 + next() * 1.4);
      const from = at;
      const to = at + long;
      at = to + next() * mean * 0.2;
      const job = `${4000 + out.length} ${pick(JOBS, next())}`;
      const tone = Math.floor(next() * 8);
      const id = `${row.id}-${i}`;
      if (to < now) out.push({ id, row: row.id, from, to, kind: "past", label: job, tone });
      else if (from < now)
        out.push({
          id,
          row: row.id,
          from,
          to: null,
          expected: to,
          kind: "running",
          label: job,
          tone,
        });
      else if (next() < 0.15)
        out.push({ id, row: row.id, from, to, kind: "reserved", label: "maintenance", tone });
      else out.push({ id, row: row.id, from, to, kind: "promised", label: job, tone });
    }
  }
  return { rows: list, bars: out };
}

const ESC = "\u001b";

export function logLines(
  count: number,
  start: number,
  seed = 5,
  plain = false,
): (string | LogLine)[] {
  const next = random(seed);
  const out: (string | LogLine)[] = [];
  for (let i = 0; i < count; i++) {
    const loss = (4 * Math.exp(-(start + i) / 400_000) + next() * 0.1).toFixed(4);
    const r = next();
    let text = `step ${start + i} loss ${loss} lr 3.0e-4 tokens/s ${Math.floor(98_000 + next() * 9000)} grad ${(next() * 2).toFixed(3)}`;
    if (r < 0.004) text = `${ESC}[33mWARN${ESC}[0m gradient norm 14.2 clipped at step ${start + i}`;
    else if (r < 0.006)
      text = `${ESC}[1;31mERROR${ESC}[0m NCCL timeout on rank ${Math.floor(next() * 32)}, see https://pytorch.org/docs/stable/distributed.html (retrying)`;
    else if (r < 0.008) text = `saved checkpoint /data/ckpt/step-${start + i} in 41 s, 220 GB`;
    out.push(
      plain
        ? text
        : { text, at: 1_795_000_000_000 + (start + i) * 850, rank: Math.floor(next() * 4) },
    );
  }
  return out;
}
