// All charts with made-up data, to look at. Development only.

import { type ReactNode, StrictMode, Suspense, useState } from "react";
import { createRoot } from "react-dom/client";
import "../../design/base.css";
import { BarList } from "../bar-list/BarList";
import { BurnDown } from "../burn-down/BurnDown";
import { CodeEditor, DiffView } from "../code-editor";
import { Gantt } from "../gantt/Gantt";
import { ClusterMap } from "../heat-map/ClusterMap";
import { TimeMap } from "../heat-map/TimeMap";
import { LineChart } from "../line-chart/LineChart";
import { LogView } from "../log-view/LogView";
import { LogStore } from "../log-view/store";
import { ShareBar, ShareKey } from "../share-bar/ShareBar";
import { Sparkline } from "../sparkline/Sparkline";
import { StackBar } from "../stack-bar/StackBar";
import { StackColumns } from "../stack-bar/StackColumns";
import { Terminal } from "../terminal";
import { type Attempt, Timeline, TimelineSmall } from "../timeline/Timeline";
import { bars, cluster, logLines, overTime, random, TEAMS } from "./data";
import { fakeShell } from "./fake-shell";
import "./gallery.css";

const wanted = new URLSearchParams(location.search);
document.documentElement.dataset.theme = wanted.get("theme") ?? "light";

const HOUR = 3_600_000;
const NOW = new Date("2026-11-18T15:12:00").getTime();
const money = (v: number) =>
  `$${v.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
const dollars = (v: number) => `$${Math.round(v).toLocaleString("en-US")}`;
const percent = (v: number) => `${Math.round(v)} %`;

const times = Array.from({ length: 240 }, (_, i) => NOW - (239 - i) * 60_000).filter(
  (_, i) => i < 90 || i > 110,
);
const wave = (seed: number, base: number) => {
  const r = random(seed);
  return times.map((_, i) =>
    Math.max(0, Math.min(100, base + Math.sin(i / 20 + seed) * 6 + (r() - 0.5) * 8)),
  );
};
const lines = [
  { key: "0", label: "rank 0", values: wave(1, 91) },
  { key: "1", label: "rank 1", values: wave(2, 88) },
  { key: "2", label: "rank 2", values: wave(3, 72) },
  { key: "3", label: "rank 3 (slow)", values: wave(4, 41) },
];
const many = Array.from({ length: 12 }, (_, i) => ({
  key: `${i}`,
  label: `gpu-01-0${(i % 8) + 1} GPU ${i}`,
  values: wave(i + 9, 30 + i * 5),
}));
const future = Array.from({ length: 60 }, (_, i) => NOW - 40 * HOUR + i * HOUR);
const cost = {
  key: "cost",
  label: "cost",
  values: future.map((_, i) => i * 21 + Math.sin(i / 3) * 8),
  dashedFrom: NOW,
};

const attempts: Attempt[] = [
  {
    number: 1,
    segments: [
      {
        state: "waiting",
        from: NOW - 20 * HOUR,
        to: NOW - 17.5 * HOUR,
        cause: "One rack with 4 free nodes was missing",
      },
      { state: "starting", from: NOW - 17.5 * HOUR, to: NOW - 17.4 * HOUR },
      { state: "running", from: NOW - 17.4 * HOUR, to: NOW - 11 * HOUR, cost: "$412.10" },
      { state: "saving", from: NOW - 11 * HOUR, to: NOW - 10.95 * HOUR },
      {
        state: "preempted",
        from: NOW - 10.95 * HOUR,
        to: NOW - 10.9 * HOUR,
        cause: "vision took its share back",
        by: "job 4688 vit-l",
      },
    ],
  },
  {
    number: 2,
    segments: [
      { state: "waiting", from: NOW - 10.9 * HOUR, to: NOW - 9 * HOUR },
      { state: "running", from: NOW - 9 * HOUR, to: NOW - 5 * HOUR, cost: "$258.00" },
      { state: "paused", from: NOW - 5 * HOUR, to: NOW - 4 * HOUR, by: "a.kumar" },
    ],
  },
  {
    number: 3,
    segments: [
      { state: "starting", from: NOW - 4 * HOUR, to: NOW - 3.8 * HOUR },
      { state: "running", from: NOW - 3.8 * HOUR, to: null, cost: "$241.90" },
    ],
  },
];

const utilization = {
  kind: "scale" as const,
  label: "utilization",
  min: 0,
  max: 1,
  format: (v: number) => percent(v * 100),
};
const nodes = cluster(Number(wanted.get("nodes") ?? 64));
const map = overTime(256, 120);
const gantt = bars(24, 260, NOW);
const store = new LogStore({ lines: 120_000 });
store.append([
  { text: "\u001b[1mBerth\u001b[0m starts attempt 3 on 4 nodes", at: NOW - HOUR, rank: 0 },
]);
store.append(logLines(Number(wanted.get("lines") ?? 150_000), 0));
store.append([
  {
    text: "\u001b[32m✓ 41 tests\u001b[0m \u001b[38;5;208morange\u001b[0m \u001b[38;2;20;20;60mnearly black\u001b[0m \u001b[48;5;22m on green \u001b[0m \u001b[7minverse\u001b[0m \u001b[4munderlined\u001b[0m",
    at: NOW,
    rank: 1,
  },
  {
    text: "<img src=x onerror=alert(1)> and \u001b]0;title\u0007javascript:alert(1) https://user:pw@evil.example/ https://example.com/a_(b).",
    at: NOW,
    rank: 2,
  },
  {
    text: "שלום עולם, a line from right to left, and a very long one: ".concat(
      "all work and no play ".repeat(20),
    ),
    at: NOW,
    rank: 3,
  },
]);

const yaml = `name: llama-70b
# four nodes of one rack
gpus: H100:8
nodes: 4
queue: nlp
run: |
  torchrun --nproc-per-node 8 train.py
checkpoint:
  every: 30m
  path: /data/ckpt
timelimit: 3d
env:
  NCCL_DEBUG: "WARN"
`;

function Section({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section id={name.replace(/\W+/g, "-")} className="gallery-part">
      <h2>{name}</h2>
      {children}
    </section>
  );
}

function Maps() {
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set(["n3", "n4"]));
  const team = { kind: "category" as const, label: "team", names: TEAMS };
  return (
    <>
      <Section name="map utilization">
        <ClusterMap
          title="GPUs by utilization"
          nodes={nodes}
          figure={utilization}
          selected={picked}
          onSelect={(ids, add) => setPicked(new Set(add ? [...picked, ...ids] : ids))}
          tooltip={(t) => `${t.node.name}${t.gpu ? ` GPU ${t.gpu.index}, ${t.gpu.state}` : ""}`}
        />
      </Section>
      <Section name="map team">
        <ClusterMap title="GPUs by team" nodes={nodes.slice(0, 24)} figure={team} />
      </Section>
      <Section name="map free">
        <ClusterMap
          title="Free GPUs"
          nodes={nodes.slice(0, 24)}
          figure={{ kind: "free", label: "free" }}
        />
      </Section>
      <Section name="map time">
        <TimeMap
          title="Utilization over two hours"
          rows={map.rows}
          raster={map.raster}
          from={NOW - 2 * HOUR}
          step={60_000}
          figure={utilization}
          height={420}
        />
      </Section>
      <Section name="map time few">
        <TimeMap
          title="Utilization of eight GPUs"
          rows={map.rows.slice(0, 16)}
          raster={{ ...map.raster, rows: 16 }}
          from={NOW - 2 * HOUR}
          step={60_000}
          figure={utilization}
        />
      </Section>
    </>
  );
}

function Gallery() {
  const [text, setText] = useState(yaml);
  const [range, setRange] = useState<[number, number]>();
  return (
    <main className="gallery">
      <Section name="lines">
        <div className="gallery-two">
          <LineChart
            range={range}
            onZoom={(from, to) => {
              console.info("zoom", from, to);
              setRange([from, to]);
            }}
            onZoomReset={() => setRange(undefined)}
            title="GPU utilization"
            times={times}
            series={lines}
            unit={percent}
            max={100}
            step={60_000}
            syncKey="g"
          />
          <LineChart
            title="GPU utilization of many"
            times={times}
            series={many}
            unit={percent}
            syncKey="g"
          />
          <LineChart
            title="Wait"
            times={times}
            series={[{ key: "p50", label: "median", values: wave(30, 20) }]}
            bands={[{ key: "b", label: "p50 to p90", low: wave(30, 20), high: wave(31, 44) }]}
            unit={(v) => `${Math.round(v)} min`}
            syncKey="g"
          />
          <LineChart
            title="Cost"
            times={future}
            series={[cost]}
            unit={dollars}
            limit={{ value: 1100, label: "price cap $1,100" }}
          />
          <LineChart
            title="Nothing"
            times={[]}
            series={lines.map((l) => ({ ...l, values: [] }))}
            unit={percent}
          />
          <LineChart
            title="One"
            times={[NOW]}
            series={[{ key: "a", label: "rank 0", values: [55] }]}
            unit={percent}
          />
        </div>
      </Section>
      <Section name="sparklines">
        <div className="gallery-row">
          {[91, 60, 22, 3].map((v, i) => (
            <Sparkline
              key={v}
              values={wave(50 + i, v)}
              max={100}
              label={`GPU utilization, now ${v} %`}
            />
          ))}
          <Sparkline values={[]} label="no data" />
          <Sparkline values={[1, null, 4, 5, null, null, 3, 4, 2]} label="gaps" tone={1} />
          <TimelineSmall attempts={attempts} now={NOW} />
        </div>
      </Section>
      <Section name="timeline">
        <Timeline title="Attempts of job 4711" attempts={attempts} now={NOW} />
        <div className="gallery-gap" />
        <Timeline
          title="A failed job"
          now={NOW}
          attempts={[
            {
              number: 1,
              segments: [
                { state: "waiting", from: NOW - HOUR, to: NOW - 0.6 * HOUR },
                { state: "running", from: NOW - 0.6 * HOUR, to: NOW - 0.1 * HOUR },
                {
                  state: "ended",
                  outcome: "failed",
                  from: NOW - 0.1 * HOUR,
                  to: NOW - 0.1 * HOUR,
                  cause: "CUDA out of memory, rank 5",
                },
              ],
            },
          ]}
        />
      </Section>
      <Section name="shares">
        <div className="gallery-shares">
          {[
            ["nlp", { used: 96, quota: 128, fair: 120, lent: 16 }],
            ["vision", { used: 112, quota: 96, fair: 100 }],
            ["speech", { used: 20, quota: 64, fair: 44, lent: 32 }],
            ["a-team-with-a-rather-long-name", { used: 0, quota: 8, fair: 0.5 }],
          ].map(([name, share]) => (
            <div key={name as string}>
              <span>{name as string}</span>
              <ShareBar {...(share as { used: number; quota: number })} most={136} />
            </div>
          ))}
        </div>
        <ShareKey />
      </Section>
      <Section name="costs">
        <div className="gallery-two">
          <StackBar
            title="Costs in November"
            format={money}
            onOpen={() => {}}
            parts={[
              { key: "nlp", label: "nlp", value: 31420.5 },
              { key: "vision", label: "vision", value: 18230 },
              { key: "speech", label: "speech", value: 4100.25 },
              { key: "lost", label: "lost to preemption", value: 214, tone: 7, hatched: true },
              { key: "idle", label: "idle", value: 2940, tone: 5, hatched: true },
            ]}
          />
          <BurnDown
            title="Budget of nlp in November"
            from={new Date("2026-11-01T00:00").getTime()}
            to={new Date("2026-12-01T00:00").getTime()}
            now={NOW}
            limit={45000}
            spent={Array.from({ length: 19 }, (_, i) => ({
              at: NOW - (18 - i) * 24 * HOUR + (i === 0 ? 9 * HOUR : 0),
              spent: (i * 31420) / 18 + Math.sin(i) * 500 * (i > 0 ? 1 : 0),
            }))}
            forecast={Array.from({ length: 12 }, (_, i) => ({
              at: NOW + (i + 1) * 24 * HOUR,
              p10: 31420 + (i + 1) * 1100,
              p50: 31420 + (i + 1) * 1450,
              p90: 31420 + (i + 1) * 1850,
            }))}
            runsOutAt={NOW + 9.3 * 24 * HOUR}
            format={dollars}
            tick={(v) => `$${v / 1000}k`}
          />
          <StackColumns
            title="Costs by day"
            keys={[
              ...TEAMS.slice(0, 5).map((t) => ({ key: t, label: t })),
              { key: "idle", label: "idle", tone: 7, hatched: true },
            ]}
            points={Array.from({ length: 30 }, (_, i) => ({
              at: new Date(2026, 9, 20 + i).getTime(),
              values: [1, 2, 3, 4, 5, 6].map((k) => 200 * random(i * 7 + k)() * (7 - k)),
            }))}
            step={24 * HOUR}
            format={money}
            tick={dollars}
          />
          <BarList
            title="By project"
            format={money}
            onOpen={() => {}}
            items={[
              { key: "a", label: "sft-mix-v3", value: 3010, note: "41 runs" },
              { key: "b", label: "rlhf-abl", value: 8900, note: "88 runs" },
              {
                key: "c",
                label: "an-experiment-with-a-name-that-does-not-fit-into-the-space-given",
                value: 410,
              },
            ]}
          />
        </div>
      </Section>
      <Maps />
      <Section name="gantt">
        <Gantt title="Jobs on nodes" rows={gantt.rows} bars={gantt.bars} now={NOW} height={420} />
      </Section>
      <Section name="log">
        <LogView
          title="Log of job 4711"
          store={store}
          live
          height={380}
          ranks={["all", "0", "1", "2", "3"].map((r) => ({
            id: r,
            label: r === "all" ? "all ranks" : `rank ${r}`,
            on: r === "all",
          }))}
          wholeLog={
            <>
              The whole log: <code>berth logs 4711</code>
            </>
          }
        />
      </Section>
      <Suspense fallback={null}>
        <Section name="editor">
          <div className="gallery-two">
            <CodeEditor
              title="Job file"
              value={text}
              onChange={setText}
              height={300}
              diagnostics={[
                {
                  line: 11,
                  column: 1,
                  severity: "error",
                  message: "unknown key `timelimit`; did you mean `time_limit`?",
                },
                {
                  line: 4,
                  column: 8,
                  severity: "warning",
                  message: "4 nodes in one rack wait about 3 h",
                },
              ]}
            />
            <CodeEditor title="Policy" value={yaml} readOnly height={300} />
          </div>
          <div className="gallery-gap" />
          <DiffView
            title="Policy"
            before={yaml}
            after={yaml
              .replace("nodes: 4", "nodes: 8")
              .replace("30m", "15m\n  keep: 3")
              .replace('env:\n  NCCL_DEBUG: "WARN"\n', "")}
          />
        </Section>
        <Section name="terminal">
          <Terminal
            title="Shell in job 4711"
            connect={() => fakeShell(wanted.get("shell") ?? "open")}
            height={220}
          />
        </Section>
      </Suspense>
    </main>
  );
}

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <Gallery />
    </StrictMode>,
  );
