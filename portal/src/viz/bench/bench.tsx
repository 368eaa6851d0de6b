// Measures the heavy views in the browser it runs in. Development only; no page imports it.
//
// Times run from new data to pixels that were read back, so that drawing that the browser puts off
// is counted too.

import { useState } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { Gantt, type View } from "../gantt/Gantt";
import type { Raster } from "../heat-map/raster";
import { TimeMap } from "../heat-map/TimeMap";
import { LogView } from "../log-view/LogView";
import type { Query } from "../log-view/match";
import { Search } from "../log-view/search";
import { LogStore } from "../log-view/store";
import { bars, logLines, overTime } from "./data";

export interface Redraw {
  rounds: number;
  /** What it takes when nothing else wants the processor. */
  least_ms: number;
  median_ms: number;
  p95_ms: number;
  most_ms: number;
}

export interface SearchTime {
  lines: number;
  characters: number;
  found: number;
  /** From the call to the complete result. */
  elapsed_ms: number;
  /** For how long the page could not answer, at most. */
  longest_block_ms: number;
}

function stage(): HTMLElement {
  const element = document.createElement("div");
  element.style.width = "1200px";
  document.body.append(element);
  return element;
}

function readBack(root: HTMLElement): void {
  const canvas = root.querySelector("canvas");
  canvas?.getContext("2d")?.getImageData(canvas.width >> 1, canvas.height >> 1, 1, 1);
}

const frame = () => new Promise<void>((resolve) => requestAnimationFrame(() => resolve()));

async function rounds(count: number, root: HTMLElement, change: (round: number) => void) {
  const times: number[] = [];
  for (let round = 0; round < count + 5; round++) {
    await frame();
    const start = performance.now();
    flushSync(() => change(round));
    readBack(root);
    // The first rounds warm up.
    if (round >= 5) times.push(performance.now() - start);
  }
  return sum(times);
}

function sum(times: number[]): Redraw {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part: number) =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
  return {
    rounds: times.length,
    least_ms: round(sorted[0] ?? 0),
    median_ms: at(0.5),
    p95_ms: at(0.95),
    most_ms: at(1),
  };
}

const round = (ms: number) => Math.round(ms * 100) / 100;

/** GPUs by time: every value is new in each round. */
export async function benchHeat(gpus = 1024, columns = 120, count = 60): Promise<Redraw> {
  const root = stage();
  const app = createRoot(root);
  const { raster, rows } = overTime(gpus, columns);
  const sets = [1, 2, 3, 4].map((seed) => overTime(gpus, columns, seed).raster);
  const figure = {
    kind: "scale" as const,
    label: "GPU utilization",
    min: 0,
    max: 1,
    format: (v: number) => `${Math.round(v * 100)} %`,
  };
  let show: (raster: Raster) => void = () => {};
  function Shown() {
    const [now, set] = useState(raster);
    show = set;
    return (
      <TimeMap
        title="bench"
        rows={rows}
        raster={now}
        from={0}
        step={60_000}
        figure={figure}
        height={gpus * 2 + 24}
      />
    );
  }
  flushSync(() => app.render(<Shown />));
  await frame();
  // A new object in each round, as new data has.
  const out = await rounds(count, root, (i) => {
    const next = sets[i % sets.length] as Raster;
    show({ ...next, values: next.values.slice() });
  });
  app.unmount();
  root.remove();
  return out;
}

/** The Gantt chart with all bars in sight, moved a little in each round. */
export async function benchGantt(count = 2000, rows = 128, redraws = 60): Promise<Redraw> {
  const root = stage();
  const app = createRoot(root);
  const now = 1_795_000_000_000;
  const made = bars(rows, count, now);
  const hour = 3_600_000;
  let show: (view: View) => void = () => {};
  function Shown() {
    const [view, set] = useState<View>({ from: now - 24 * hour, to: now + 14 * hour });
    show = set;
    return (
      <Gantt title="bench" rows={made.rows} bars={made.bars} now={now} view={view} height={4000} />
    );
  }
  flushSync(() => app.render(<Shown />));
  await frame();
  const out = await rounds(redraws, root, (i) => {
    show({ from: now - 24 * hour + i * 60_000, to: now + 14 * hour + i * 60_000 });
  });
  app.unmount();
  root.remove();
  return out;
}

let million: LogStore | null = null;

function filled(lines: number): LogStore {
  if (million?.count === lines) return million;
  const store = new LogStore();
  for (let at = 0; at < lines; at += 10_000) {
    store.append(logLines(Math.min(10_000, lines - at), at, at + 1, true));
  }
  million = store;
  return store;
}

/** Searches while the viewer shows the same log, and watches whether the page still answers. */
export async function benchSearch(
  query: Query = { text: "nccl timeout", regex: false, matchCase: false },
  lines = 1_000_000,
): Promise<SearchTime> {
  const store = filled(lines);
  const root = stage();
  const app = createRoot(root);
  flushSync(() => app.render(<LogView title="bench" store={store} />));
  await frame();
  await frame();
  const watch = heartbeat();
  const start = performance.now();
  const search = new Search(store, query, () => {});
  await search.run();
  const elapsed = performance.now() - start;
  const longest = watch();
  app.unmount();
  root.remove();
  search.stop();
  if (search.found.error) throw new Error(search.found.error);
  return {
    lines: store.count,
    characters: store.characters,
    found: search.found.lines.length,
    elapsed_ms: round(elapsed),
    longest_block_ms: round(longest),
  };
}

/** Lines that come in batches while the end is followed: the longest block of the page. */
export async function benchAppend(
  lines = 1_000_000,
  batch = 2000,
): Promise<{ elapsed_ms: number; longest_block_ms: number }> {
  const batches: ReturnType<typeof logLines>[] = [];
  for (let at = 0; at < lines; at += batch) batches.push(logLines(batch, at, at + 1, true));
  const store = new LogStore();
  const root = stage();
  const app = createRoot(root);
  flushSync(() => app.render(<LogView title="bench" store={store} live />));
  await frame();
  const watch = heartbeat();
  const start = performance.now();
  for (const list of batches) {
    store.append(list);
    await tick();
  }
  const elapsed = performance.now() - start;
  const longest = watch();
  app.unmount();
  root.remove();
  return { elapsed_ms: round(elapsed), longest_block_ms: round(longest) };
}

function tick(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(0);
  });
}

/** Beats as often as the page lets it; the returned function stops it and tells the longest pause. */
function heartbeat(): () => number {
  let last = performance.now();
  let longest = 0;
  let on = true;
  const beat = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (on) setTimeout(beat, 0);
  };
  beat();
  return () => {
    on = false;
    return Math.max(longest, performance.now() - last);
  };
}

export async function benchAll() {
  return {
    heat_1024x120: await benchHeat(),
    gantt_2000: await benchGantt(),
    search_plain: await benchSearch(),
    search_regex: await benchSearch({
      text: "NCCL timeout on rank (7|13)\\b",
      regex: true,
      matchCase: false,
    }),
    append_million: await benchAppend(),
  };
}
