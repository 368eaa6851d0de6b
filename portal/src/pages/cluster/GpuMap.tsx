import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTeamNames } from "@/api/session";
import type { Gpu, Node } from "@/api/types";
import { useGo } from "@/app/routes";
import { EmptyState, ErrorNote, Note, Panel, Segmented, Select, Skeleton } from "@/design";
import { relative } from "@/lib/format";
import { useNow } from "@/lib/now";
import { teamOrder } from "@/lib/tones";
import { ClusterMap, type MapTarget } from "@/viz/heat-map/ClusterMap";
import { rasterOf } from "@/viz/heat-map/raster";
import { TimeMap } from "@/viz/heat-map/TimeMap";
import { type FigureId, figureOf, mapOf, teamsOf, words } from "./model";
import { figuresQuery } from "./routes";
import { FIGURES } from "./search";

const NAMES: Record<FigureId, string> = {
  utilization: "Utilization",
  memory: "Memory",
  power: "Power",
  team: "Team",
  age: "Held for",
  free: "Free",
};

/** Figures that are kept over time, by their names in the API. */
const KEPT: Partial<Record<FigureId, string>> = {
  utilization: "utilization",
  memory: "gpu_memory",
  power: "power",
};

const SPANS = [
  { value: "now", label: "Now" },
  { value: "1", label: "1 h" },
  { value: "24", label: "24 h" },
  { value: "168", label: "7 d" },
] as const;
type SpanId = (typeof SPANS)[number]["value"];

/** What all GPUs do: now, or over time. */
export function GpuMap({
  gpus,
  nodes,
  figure,
  onFigure,
  selected,
  onSelect,
}: {
  gpus: readonly Gpu[] | undefined;
  nodes: readonly Node[] | undefined;
  figure: FigureId;
  onFigure: (figure: FigureId) => void;
  selected: ReadonlySet<string>;
  onSelect: (nodes: ReadonlySet<string>) => void;
}) {
  const [span, setSpan] = useState<SpanId>("now");
  const kept = KEPT[figure];
  const over = span !== "now" && kept !== undefined;
  return (
    <Panel
      title="GPUs"
      actions={
        <span className="flex flex-wrap items-center gap-2 py-1">
          {kept && <Segmented label="Time" options={SPANS} value={span} onChange={setSpan} />}
          <Select
            aria-label="Figure"
            options={FIGURES.map((value) => ({ value, label: NAMES[value] }))}
            value={figure}
            onChange={onFigure}
          />
        </span>
      }
    >
      {over ? (
        <OverTime figure={figure} name={kept} hours={Number(span)} />
      ) : gpus === undefined || nodes === undefined ? (
        <Skeleton height={180} />
      ) : (
        <Now gpus={gpus} nodes={nodes} figure={figure} selected={selected} onSelect={onSelect} />
      )}
    </Panel>
  );
}

function Now({
  gpus,
  nodes,
  figure,
  selected,
  onSelect,
}: {
  gpus: readonly Gpu[];
  nodes: readonly Node[];
  figure: FigureId;
  selected: ReadonlySet<string>;
  onSelect: (nodes: ReadonlySet<string>) => void;
}) {
  const go = useGo();
  const now = useNow(60_000);
  const all = useTeamNames();
  const teams = useMemo(() => teamOrder(all, teamsOf(gpus)), [all, gpus]);
  const map = useMemo(
    () => mapOf(gpus, nodes, figure, teams, now),
    [gpus, nodes, figure, teams, now],
  );
  const drawn = useMemo(() => figureOf(figure, gpus, teams), [figure, gpus, teams]);
  const byPlace = useMemo(() => new Map(gpus.map((g) => [`${g.node}/${g.index}`, g])), [gpus]);
  const found = ({ node, gpu }: MapTarget) => gpu && byPlace.get(`${node.id}/${gpu.index}`);
  if (map.length === 0)
    return (
      <EmptyState title="There are no GPUs" command="berth up --gpus 8xH100">
        Berth found none on this machine. Declared GPUs let you try everything without any.
      </EmptyState>
    );
  return (
    <ClusterMap
      title="GPUs of the cluster"
      nodes={map}
      figure={drawn}
      selected={selected}
      onSelect={(ids, add) => onSelect(new Set(add ? [...selected, ...ids] : ids))}
      describe={(target) => words(found(target) || undefined).join("; ")}
      tooltip={(target) => {
        const gpu = found(target);
        return (
          <span className="flex flex-col">
            <b>{gpu ? `${gpu.node} GPU ${gpu.index}` : target.node.name}</b>
            {gpu && <span className="text-muted">{gpu.model}</span>}
            {words(gpu || undefined).map((line) => (
              <span key={line}>{line}</span>
            ))}
          </span>
        );
      }}
      onOpen={(target) => {
        const job = found(target)?.holders[0]?.job;
        if (job) go(`/jobs/${String(job)}`);
        else go("/cluster", { open: target.node.id });
      }}
    />
  );
}

function OverTime({ figure, name, hours }: { figure: FigureId; name: string; hours: number }) {
  const query = useQuery(figuresQuery(name, hours));
  const answer = query.data;
  const raster = useMemo(
    () => answer && rasterOf(answer.rows, Math.max(0, ...answer.rows.map((r) => r.values.length))),
    [answer],
  );
  if (query.error) return <ErrorNote error={query.error} onRetry={() => void query.refetch()} />;
  if (!answer || !raster) return <Skeleton height={180} />;
  // Every GPU has its row, also one that told nothing.
  if (answer.rows.every((r) => r.values.every((v) => v === null)))
    return (
      <Note>
        No GPU told its figures in this time
        {answer.notes.length > 0 && `: ${answer.notes.join("; ")}`}.
      </Note>
    );
  // Utilization comes in thousandths, memory in MiB, power in milliwatts: the largest sets the scale.
  const most = Math.max(1, ...answer.rows.flatMap((r) => r.values.map((v) => v ?? 0)));
  const max = figure === "utilization" ? 1000 : most;
  const shown = (value: number) =>
    figure === "utilization"
      ? `${Math.round(value / 10)} %`
      : figure === "power"
        ? `${Math.round(value / 1000)} W`
        : `${(value / 1024).toFixed(1)} GiB`;
  const from = Date.parse(answer.from);
  return (
    <div className="flex flex-col gap-2">
      <TimeMap
        title={`${NAMES[figure]} of all GPUs`}
        rows={answer.rows}
        raster={raster}
        from={from}
        step={answer.step_ms}
        figure={{ kind: "scale", label: NAMES[figure], min: 0, max, format: shown }}
        tooltip={(target) => (
          <span className="flex flex-col">
            <b>
              {target.row.node} GPU {target.row.gpu}
            </b>
            <span>{target.value === null ? "no data" : shown(target.value)}</span>
            <span className="text-muted">{relative(target.at)}</span>
          </span>
        )}
      />
      {answer.left_out > 0 && <Note>{answer.left_out} more GPUs are left out.</Note>}
    </div>
  );
}
