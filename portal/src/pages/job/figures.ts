// The figures of a job as charts: a line for each GPU or task, on one axis of time. Pure.

import type { JobFigures } from "@/api/types";
import { bytes, percent } from "@/lib/format";
import type { LineSeries } from "@/viz/line-chart/LineChart";

export interface Chart {
  id: string;
  title: string;
  /** What it says, for the tooltip of the head. */
  hint: string;
  times: number[];
  series: LineSeries[];
  unit: (value: number) => string;
  min: number;
  max?: number | undefined;
}

interface Spec {
  id: string;
  title: string;
  hint: string;
  of: "gpu" | "task";
  figures: { name: string; label?: string }[];
  scale: number;
  unit: (value: number) => string;
  max?: number;
  /** The least that the axis reaches to: a thousandth of a core is no mountain. */
  least?: number;
}

const watts = (v: number) => `${v >= 100 || v === 0 ? Math.round(v) : v.toFixed(1)}\u00a0W`;
const cores = (v: number) => {
  const text = v >= 10 ? v.toFixed(0) : String(Number(v.toFixed(v < 0.1 ? 3 : 2)));
  return `${text}\u00a0cores`;
};
const share = (v: number) => percent(v, v < 10 && v > 0 ? 1 : 0);
const MIB = 1_048_576;

const SPECS: Spec[] = [
  {
    id: "utilization",
    title: "GPU utilization",
    hint: "Any kernel ran. It says that the GPU lives, not how much of it works.",
    of: "gpu",
    figures: [{ name: "utilization" }],
    scale: 0.1,
    unit: share,
    max: 100,
  },
  {
    id: "sm",
    title: "SM activity",
    hint: "Multiprocessors had work.",
    of: "gpu",
    figures: [{ name: "sm_active" }],
    scale: 0.1,
    unit: share,
    max: 100,
  },
  {
    id: "tensor",
    title: "Tensor activity",
    hint: "Tensor cores were busy.",
    of: "gpu",
    figures: [{ name: "tensor_active" }],
    scale: 0.1,
    unit: share,
    max: 100,
  },
  {
    id: "dram",
    title: "GPU memory activity",
    hint: "The memory interface was busy.",
    of: "gpu",
    figures: [{ name: "dram_active" }],
    scale: 0.1,
    unit: share,
    max: 100,
  },
  {
    id: "gpu-memory",
    title: "GPU memory",
    hint: "Memory in use.",
    of: "gpu",
    figures: [{ name: "gpu_memory" }],
    scale: MIB,
    unit: bytes,
  },
  {
    id: "power",
    title: "GPU power",
    hint: "Power that the GPUs take.",
    of: "gpu",
    figures: [{ name: "power" }],
    scale: 0.001,
    unit: watts,
  },
  {
    id: "temperature",
    title: "GPU temperature",
    hint: "Temperature of the GPUs.",
    of: "gpu",
    figures: [{ name: "temperature" }],
    scale: 1,
    unit: (v) => `${Math.round(v)}\u00a0°C`,
  },
  {
    id: "clock",
    title: "SM clock",
    hint: "Clock of the multiprocessors.",
    of: "gpu",
    figures: [{ name: "sm_clock" }],
    scale: 1,
    unit: (v) => `${Math.round(v)}\u00a0MHz`,
  },
  {
    id: "cpu",
    title: "CPU",
    hint: "CPU of all its processes.",
    of: "task",
    figures: [{ name: "cpu" }],
    scale: 0.001,
    unit: cores,
    least: 1,
  },
  {
    id: "memory",
    title: "Memory",
    hint: "Memory of all its processes.",
    of: "task",
    figures: [{ name: "memory" }],
    scale: MIB,
    unit: bytes,
  },
  {
    id: "io",
    title: "Disk",
    hint: "Read from disks and written to them.",
    of: "task",
    figures: [
      { name: "read", label: "read" },
      { name: "written", label: "written" },
    ],
    scale: 1024,
    unit: (v) => `${bytes(v)}/s`,
  },
];

interface Raw {
  /** A line is one thing over all attempts: the same GPU again goes on with its line. */
  key: string;
  label: string;
  times: number[];
  values: (number | null)[];
}

function rawOf(data: JobFigures, spec: Spec): Raw[] {
  const out = new Map<string, Raw>();
  const nodes = new Set(data.tasks.map((t) => t.node)).size;
  const tasks = new Set(data.tasks.map((t) => t.task)).size;
  const add = (key: string, label: string, times: number[], values: (number | null)[]) => {
    const raw = out.get(key) ?? { key, label, times: [], values: [] };
    times.forEach((t, i) => {
      const v = values[i];
      raw.times.push(t);
      raw.values.push(v === null || v === undefined ? null : v * spec.scale);
    });
    out.set(key, raw);
  };
  for (const task of data.tasks) {
    for (const { name, label } of spec.figures) {
      if (spec.of === "task") {
        const line = task.figures.find((f) => f.figure === name);
        const who = tasks > 1 ? `task ${task.task}` : undefined;
        const words = [who, label].filter(Boolean).join(" ") || "all processes";
        if (line) add(`${task.task}/${name}`, words, task.times_ms, line.values);
      } else {
        for (const gpu of task.gpus) {
          const line = gpu.figures.find((f) => f.figure === name);
          if (!line) continue;
          const words = nodes > 1 ? `${gpu.node} GPU ${gpu.gpu}` : `GPU ${gpu.gpu}`;
          add(`${gpu.node}/${gpu.gpu}/${name}`, words, gpu.times_ms, line.values);
        }
      }
    }
  }
  return [...out.values()].filter((r) => r.values.some((v) => v !== null));
}

/** Lines beyond these are drawn as the mean, the least and the most: nobody tells forty hues apart. */
export const MOST_LINES = 8;

export function charts(data: JobFigures): Chart[] {
  const out: Chart[] = [];
  for (const spec of SPECS) {
    const raws = rawOf(data, spec);
    if (raws.length === 0) continue;
    const { times, rows } = aligned(raws, interval(data));
    const series =
      raws.length <= MOST_LINES
        ? raws.map((r, i) => ({ key: r.key, label: r.label, values: rows[i] as (number | null)[] }))
        : summed(rows, `${raws.length} ${spec.of === "gpu" ? "GPUs" : "lines"}`);
    out.push({
      id: spec.id,
      title: spec.title,
      hint: spec.hint,
      times,
      series,
      unit: spec.unit,
      min: 0,
      max: spec.max ?? reached(rows, spec.least),
    });
  }
  return out;
}

function reached(rows: (number | null)[][], least: number | undefined): number | undefined {
  if (least === undefined) return undefined;
  return rows.every((row) => row.every((v) => v === null || v < least)) ? least : undefined;
}

export interface Overall {
  title: string;
  times: number[];
  mean: (number | null)[];
  least: (number | null)[];
  most: (number | null)[];
  /** The latest mean, as text. */
  last: string;
  unit: (value: number) => string;
}

/** One figure of all GPUs of a job together; nothing where it was not measured. */
export function overall(data: JobFigures, id: string): Overall | undefined {
  const spec = SPECS.find((s) => s.id === id);
  const raws = spec ? rawOf(data, spec) : [];
  if (!spec || raws.length === 0) return undefined;
  const { times, rows } = aligned(raws, interval(data));
  const [mean, least, most] = summed(rows, "").map((s) => [...s.values]) as [
    Overall["mean"],
    Overall["least"],
    Overall["most"],
  ];
  const last = mean.findLast((v) => v !== null) ?? null;
  return {
    title: spec.title,
    times,
    mean,
    least,
    most,
    last: last === null ? "–" : spec.unit(last),
    unit: spec.unit,
  };
}

/** Sets of points have times of their own, off by moments: they are laid on one grid of steps. */
export function aligned(raws: readonly Pick<Raw, "times" | "values">[], step: number) {
  const size = Math.max(1000, step);
  const slots = new Set<number>();
  for (const r of raws) for (const t of r.times) slots.add(Math.floor(t / size));
  const order = [...slots].sort((a, b) => a - b);
  const index = new Map(order.map((s, i) => [s, i]));
  const rows = raws.map((r) => {
    const row: (number | null)[] = new Array(order.length).fill(null);
    r.times.forEach((t, i) => {
      const v = r.values[i];
      if (v !== null && v !== undefined) row[index.get(Math.floor(t / size)) as number] = v;
    });
    return row;
  });
  return { times: order.map((s) => s * size), rows };
}

/** The time between points: what was asked for, or how often it is measured where that is longer. */
export function interval(data: JobFigures): number {
  const gaps: number[] = [];
  for (const task of data.tasks)
    for (const times of [task.times_ms, ...task.gpus.map((g) => g.times_ms)])
      for (let i = 1; i < times.length && gaps.length < 500; i += 1)
        gaps.push((times[i] as number) - (times[i - 1] as number));
  gaps.sort((a, b) => a - b);
  const median = gaps[Math.floor(gaps.length / 2)] ?? 0;
  return Math.max(data.step_ms, Math.round(median / 1000) * 1000, 1000);
}

function summed(rows: (number | null)[][], of: string): LineSeries[] {
  const n = rows[0]?.length ?? 0;
  const mean: (number | null)[] = [];
  const least: (number | null)[] = [];
  const most: (number | null)[] = [];
  for (let i = 0; i < n; i += 1) {
    const here = rows.map((r) => r[i]).filter((v): v is number => v !== null && v !== undefined);
    mean.push(here.length ? here.reduce((a, b) => a + b, 0) / here.length : null);
    least.push(here.length ? Math.min(...here) : null);
    most.push(here.length ? Math.max(...here) : null);
  }
  return [
    { key: "mean", label: `mean of ${of}`, values: mean },
    { key: "least", label: "least", values: least },
    { key: "most", label: "most", values: most },
  ];
}
