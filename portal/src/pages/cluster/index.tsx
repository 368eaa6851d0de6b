import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { gpusQuery, nodesQuery } from "@/api/queries";
import type { Gpu, Node } from "@/api/types";
import {
  Button,
  berth,
  ErrorState,
  Money,
  neighbour,
  Page,
  Panel,
  Segmented,
  Skeleton,
  Stat,
  Stats,
  sorted,
} from "@/design";
import { gpus as gpuText, percent, plural } from "@/lib/format";
import { DrainDialog } from "./DrainDialog";
import { GanttView } from "./GanttView";
import { GpuMap } from "./GpuMap";
import { sumsOf, usual } from "./model";
import { NodeDrawer } from "./NodeDrawer";
import { NODE_COLUMNS, NodeTable } from "./Nodes";
import type { ClusterSearch } from "./search";

const route = getRouteApi("/cluster");

const VIEWS = [
  { value: "map", label: "GPUs" },
  { value: "nodes", label: "Nodes" },
  { value: "gantt", label: "Timeline" },
] as const;

/** GPUs and nodes: what they do, who has them, whether they work, and what comes next. */
export default function ClusterPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const change = (to: ClusterSearch) => void navigate({ search: (old) => ({ ...old, ...to }) });
  const view = search.view ?? "map";
  const gpus = useQuery(gpusQuery);
  const nodes = useQuery(nodesQuery);
  const rows = useMemo(
    () => nodes.data && sorted(nodes.data, NODE_COLUMNS, search.sort),
    [nodes.data, search.sort],
  );
  const names = rows?.map((node) => node.name) ?? [];
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const table = (fit: boolean) => (
    <NodeTable
      nodes={rows}
      error={nodes.error}
      onRetry={() => void nodes.refetch()}
      sort={search.sort}
      onSort={(sort) => change({ sort })}
      open={search.open}
      onOpen={(open) => change({ open })}
      fit={fit}
    />
  );
  return (
    <Page
      title="Cluster"
      command={berth(view === "nodes" ? "nodes" : "gpus")}
      actions={
        <Segmented
          label="View"
          options={VIEWS}
          value={view}
          onChange={(to) => change({ view: to === "map" ? undefined : to })}
        />
      }
    >
      <div className="flex flex-col gap-4">
        {!(gpus.error && !gpus.data) && <Head gpus={gpus.data} nodes={nodes.data} />}
        {view === "gantt" && <GanttView nodes={nodes.data} />}
        {view === "map" &&
          (gpus.error ? (
            <ErrorState error={gpus.error} onRetry={() => void gpus.refetch()} />
          ) : (
            <>
              <GpuMap
                gpus={gpus.data}
                nodes={nodes.data}
                figure={search.figure ?? usual(gpus.data ?? [])}
                onFigure={(figure) => change({ figure })}
                selected={selected}
                onSelect={setSelected}
              />
              {selected.size > 0 && (
                <Selected nodes={[...selected]} onClear={() => setSelected(new Set())} />
              )}
            </>
          ))}
        {view !== "gantt" && (
          <Panel title="Nodes" flush>
            {table(true)}
          </Panel>
        )}
      </div>
      <NodeDrawer
        node={nodes.data?.find((node) => node.name === search.open)}
        gpus={gpus.data ?? []}
        onClose={() => change({ open: undefined })}
        onStep={(by) => {
          const next = neighbour(names, (name) => name, search.open, by);
          if (next) change({ open: next });
        }}
      />
    </Page>
  );
}

function Head({
  gpus,
  nodes,
}: {
  gpus: readonly Gpu[] | undefined;
  nodes: readonly Node[] | undefined;
}) {
  if (!gpus || !nodes) return <Skeleton height={72} />;
  const sums = sumsOf(gpus, nodes);
  const sick = nodes.filter((node) => ["failed", "troubled"].includes(node.state)).length;
  return (
    <Stats>
      <Stat label="GPUs" note={plural(nodes.length, "node")}>
        {gpuText(sums.all)}
      </Stat>
      <Stat label="Held" note={sums.all > 0 ? percent((100 * sums.held) / sums.all) : undefined}>
        {gpuText(sums.held)}
      </Stat>
      <Stat
        label="Free now"
        note={sums.all > 0 ? percent((100 * sums.free) / sums.all) : undefined}
      >
        {gpuText(sums.free)}
      </Stat>
      <Stat
        label="Mean utilization"
        note={sums.utilization === null ? "not measured" : "of measured GPUs"}
      >
        {percent(sums.utilization)}
      </Stat>
      <Stat
        label="Held but idle"
        {...(sums.idle > 0 && { tone: "warn" as const })}
        note={sums.idle > 0 ? <Money micros={sums.idleMicros} rate /> : "for 10 m or more"}
      >
        {gpuText(sums.idle)}
      </Stat>
      <Stat
        label="Out of use"
        {...(sums.out > 0 && { tone: "bad" as const })}
        note={
          sick > 0
            ? `${plural(sick, "node")} in trouble`
            : sums.out > 0
              ? "drained or failed"
              : "all work"
        }
      >
        {gpuText(sums.out)}
      </Stat>
    </Stats>
  );
}

/** Nodes that were dragged over on the map. */
function Selected({ nodes, onClear }: { nodes: string[]; onClear: () => void }) {
  const [draining, setDraining] = useState<string>();
  return (
    <section
      aria-label="Selected nodes"
      className="flex flex-wrap items-center gap-2 rounded-md border border-line bg-surface px-3 py-2"
    >
      <span>{plural(nodes.length, "node")} selected</span>
      {nodes.slice(0, 12).map((node) => (
        <Button key={node} size="sm" onClick={() => setDraining(node)}>
          Drain {node}…
        </Button>
      ))}
      <Button size="sm" look="quiet" onClick={onClear}>
        Clear
      </Button>
      {draining && <DrainDialog node={draining} onClose={() => setDraining(undefined)} />}
    </section>
  );
}
