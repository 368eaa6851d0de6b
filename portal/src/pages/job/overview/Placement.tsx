import { useQuery } from "@tanstack/react-query";
import { attemptsQuery } from "@/api/queries";
import type { Attempt, Job } from "@/api/types";
import { type Column, Cut, EmptyState, Gpu, Money, Panel, Table, TextLink } from "@/design";
import { count } from "@/lib/format";

type Lease = Attempt["leases"][number];

const COLUMNS: Column<Lease>[] = [
  {
    id: "node",
    header: "Node",
    width: 120,
    grow: 1,
    fixed: true,
    narrow: "title",
    cell: (l) => (
      <TextLink to="/cluster" search={{ view: "nodes", open: l.node }}>
        {l.node}
      </TextLink>
    ),
  },
  {
    id: "task",
    header: "Task",
    width: 64,
    align: "right",
    narrow: "meta",
    cell: (l) => count(l.task),
  },
  {
    id: "gpus",
    header: "GPUs",
    width: 110,
    narrow: "meta",
    cell: (l) => (l.gpus.length > 0 ? <Cut>{indices(l.gpus)}</Cut> : "none"),
  },
  {
    id: "held",
    header: "Holds",
    width: 84,
    align: "right",
    narrow: "meta",
    cell: (l) => <Gpu milli={l.gpus_milli} />,
  },
  {
    id: "price",
    header: "Price",
    width: 100,
    align: "right",
    narrow: "end",
    cell: (l) => <Money micros={l.price_micros_per_hour} rate />,
  },
];

/** Where it runs, or ran last. */
export function PlacementPanel({ job }: { job: Job }) {
  const attempts = useQuery(attemptsQuery(job.id));
  const last = attempts.data?.at(-1);
  const live = last && !last.closed;
  return (
    <Panel title={live || !last ? "Placement" : "Placement of the last attempt"} flush>
      <Table
        id="job-placement"
        label="Placement"
        columns={COLUMNS}
        rows={attempts.data ? (last?.leases ?? []) : undefined}
        rowId={(l) => l.id}
        error={attempts.error}
        onRetry={() => void attempts.refetch()}
        compact
        fit
        empty={
          <EmptyState title="It holds nothing">
            {job.state === "pending"
              ? "Where it runs is decided when it starts."
              : "It never started."}
          </EmptyState>
        }
      />
    </Panel>
  );
}

/** `0–3, 6`. */
export function indices(all: readonly number[]): string {
  const sorted = [...all].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (sorted[j + 1] === (sorted[j] as number) + 1) j += 1;
    parts.push(j > i + 1 ? `${sorted[i]}–${sorted[j]}` : sorted.slice(i, j + 1).join(", "));
    i = j + 1;
  }
  return parts.join(", ");
}
