import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { asApiError } from "@/api/error";
import type { LeaseList, Node } from "@/api/types";
import { useGo } from "@/app/routes";
import { EmptyState, ErrorState, Note, Panel, Segmented, Skeleton } from "@/design";
import { clock, gpus } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Gantt, type GanttBar, type GanttRow } from "@/viz/gantt/Gantt";
import { rackOf } from "./model";
import { leasesQuery } from "./routes";

const SPANS = [
  { value: "6", label: "6 h" },
  { value: "24", label: "24 h" },
  { value: "168", label: "7 d" },
  { value: "720", label: "30 d" },
] as const;
type SpanId = (typeof SPANS)[number]["value"];

/** What ran, runs and will run where. */
export function GanttView({ nodes }: { nodes: readonly Node[] | undefined }) {
  const [span, setSpan] = useState<SpanId>("24");
  const now = useNow(30_000);
  // The same for a minute, so that the answer is kept.
  const from = new Date(Math.floor(now / 60_000) * 60_000 - Number(span) * 3_600_000).toISOString();
  const query = useQuery({ ...leasesQuery(from), queryKey: ["leases", span] });
  const go = useGo();
  const rows = useMemo(() => rowsOf(nodes ?? [], query.data), [nodes, query.data]);
  const bars = useMemo(() => (query.data ? barsOf(query.data) : []), [query.data]);
  return (
    <Panel
      title="Past, running and promised"
      actions={<Segmented label="Time" options={SPANS} value={span} onChange={setSpan} />}
    >
      {query.error ? (
        <ErrorState error={asApiError(query.error)} onRetry={() => void query.refetch()} />
      ) : !query.data ? (
        <Skeleton height={300} />
      ) : bars.length === 0 ? (
        <EmptyState title="Nothing ran in this time" command="berth run -g 1 -- nvidia-smi" />
      ) : (
        <div className="flex flex-col gap-2">
          <Gantt
            title="Jobs on nodes over time"
            rows={rows}
            bars={bars}
            now={now}
            height={560}
            onOpen={(bar) => {
              const job = bar.id.split("|")[1];
              if (job) go(`/jobs/${job}`);
            }}
            tooltip={(bar) => (
              <span className="flex flex-col">
                <b>{bar.label}</b>
                <span className="text-muted">
                  {clock(bar.from)} to{" "}
                  {bar.to ? clock(bar.to) : bar.expected ? `about ${clock(bar.expected)}` : "now"}
                </span>
              </span>
            )}
          />
          {query.data.more && (
            <Note>Older leases of this time are left out. Choose less time.</Note>
          )}
        </div>
      )}
    </Panel>
  );
}

function rowsOf(nodes: readonly Node[], list: LeaseList | undefined): GanttRow[] {
  const known = new Map<string, GanttRow>(
    nodes.map((node) => [node.name, { id: node.name, label: node.name, group: rackOf(node) }]),
  );
  // Nodes that have left still have a past.
  for (const lease of list?.leases ?? [])
    if (!known.has(lease.node)) known.set(lease.node, { id: lease.node, label: lease.node });
  return [...known.values()].sort((a, b) =>
    `${a.group ?? ""} ${a.id}`.localeCompare(`${b.group ?? ""} ${b.id}`, "en", { numeric: true }),
  );
}

export function barsOf(list: LeaseList): GanttBar[] {
  const teams = [
    ...new Set([...list.leases, ...list.promised].map((one) => one.team ?? "")),
  ].sort();
  const tone = (team: string | null | undefined) => teams.indexOf(team ?? "") % 8;
  const ms = (at: string | null | undefined) => (at ? Date.parse(at) : null);
  const leases = list.leases.map(
    (lease): GanttBar => ({
      id: `${lease.id}|${lease.job}`,
      row: lease.node,
      from: Date.parse(lease.from),
      to: ms(lease.to),
      kind: lease.state === "ended" ? "past" : "running",
      label: `${lease.name ?? "another team's job"}, ${gpus(lease.gpus_milli)} GPUs`,
      tone: tone(lease.team),
      expected: ms(lease.expected_to),
    }),
  );
  const promised = list.promised.flatMap((job) =>
    job.places.map(
      (place): GanttBar => ({
        id: `promised/${job.job}/${place.task}|${job.job}`,
        row: place.node,
        from: Date.parse(job.from),
        to: ms(job.to),
        kind: "promised",
        label: `${job.name ?? "another team's job"}, promised`,
        tone: tone(job.team),
      }),
    ),
  );
  const reserved = list.reserved.flatMap((one) =>
    one.nodes.map(
      (node): GanttBar => ({
        id: `reserved/${one.name}/${node}`,
        row: node,
        from: Date.parse(one.from),
        to: Date.parse(one.to),
        kind: "reserved",
        label: `${one.name}, reserved for ${one.owner}`,
        tone: 0,
      }),
    ),
  );
  return [...leases, ...promised, ...reserved];
}
