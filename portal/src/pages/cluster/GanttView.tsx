import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { asApiError } from "@/api/error";
import { useTeamNames } from "@/api/session";
import type { LeaseList, Node } from "@/api/types";
import { useGo } from "@/app/routes";
import { EmptyState, ErrorState, Note, Panel, Segmented, Skeleton } from "@/design";
import { clock, gpus } from "@/lib/format";
import { useNow } from "@/lib/now";
import { teamOrder } from "@/lib/tones";
import { Gantt, type GanttBar, type GanttRow } from "@/viz/gantt/Gantt";
import { rackOf } from "./model";
import { leasesQuery } from "./routes";

const SPANS = [
  { value: "6", label: "6 h" },
  { value: "24", label: "24 h" },
  { value: "168", label: "7 d" },
  { value: "720", label: "30 d" },
] as const;
const HOUR = 3_600_000;
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
  const all = useTeamNames();
  const here = useMemo(() => new Set(query.data && teamsOf(query.data)), [query.data]);
  const teams = useMemo(() => teamOrder(all, [...here]), [all, here]);
  const bars = useMemo(() => (query.data ? barsOf(query.data, teams) : []), [query.data, teams]);
  const first = useMemo(() => firstView(bars, now, Number(span) * HOUR), [bars, now, span]);
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
            key={span}
            first={first}
            title="Jobs on nodes over time"
            rows={rows}
            bars={bars}
            now={now}
            height={560}
            keys={
              here.size > 8
                ? []
                : teams.flatMap((team, tone) =>
                    here.has(team) ? [{ label: team || "other teams", tone }] : [],
                  )
            }
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

/** The time that was chosen, and half as much ahead: one long limit would leave no room for the past. */
function firstView(bars: readonly GanttBar[], now: number, span: number) {
  const last = bars.reduce((most, bar) => Math.max(most, bar.to ?? 0, bar.expected ?? 0), now);
  const ahead = Math.min(Math.max((last - now) * 1.05, span * 0.05), span / 2);
  return { from: now - span, to: now + ahead };
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

function teamsOf(list: LeaseList): string[] {
  return [...list.leases, ...list.promised].map((one) => one.team ?? "");
}

function gpusText(milli: number): string {
  return milli === 0 ? "no GPU" : `${gpus(milli)} ${milli === 1000 ? "GPU" : "GPUs"}`;
}

/** `teams` in the order of their colours. */
export function barsOf(list: LeaseList, teams: readonly string[]): GanttBar[] {
  const tone = (team: string | null | undefined) => teams.indexOf(team ?? "") % 8;
  const ms = (at: string | null | undefined) => (at ? Date.parse(at) : null);
  const leases = list.leases.map(
    (lease): GanttBar => ({
      id: `${lease.id}|${lease.job}`,
      row: lease.node,
      from: Date.parse(lease.from),
      to: ms(lease.to),
      kind: lease.state === "ended" ? "past" : "running",
      label: `${lease.name ?? "another team's job"}, ${gpusText(lease.gpus_milli)}`,
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
