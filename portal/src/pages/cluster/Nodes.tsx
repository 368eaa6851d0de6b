import { useState } from "react";
import { api, data } from "@/api/client";
import { useChange } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Node } from "@/api/types";
import {
  Bar,
  Button,
  type Column,
  Cut,
  EmptyState,
  ErrorNote,
  Figure,
  Money,
  None,
  StateBadge,
  Table,
} from "@/design";
import { bytes, gpus, span } from "@/lib/format";
import { DrainDialog } from "./DrainDialog";
import { rackOf } from "./model";

export function NodeState({ node }: { node: Node }) {
  return <StateBadge state={node.state} />;
}

/** Whether a node takes work, and what draining it would do. */
export function NodeActions({ node }: { node: Node }) {
  const may = useMay("NodesManage");
  const [draining, setDraining] = useState(false);
  const path = { params: { path: { node: node.name } } };
  const cordon = useChange(() => data(api.POST("/v1/nodes/{node}/cordon", path)), "nodes", "gpus");
  const resume = useChange(() => data(api.POST("/v1/nodes/{node}/resume", path)), "nodes", "gpus");
  const takesWork = node.state === "ready";
  const gone = node.state === "failed" || node.state === "leaving";
  // Whoever may not is shown nothing to press.
  if (!may.ok) return <None />;
  const error = cordon.error ?? resume.error;
  return (
    <span className="inline-flex items-center gap-1">
      {takesWork ? (
        <Button size="sm" busy={cordon.isPending} onClick={() => cordon.mutate(undefined)}>
          Cordon<span className="sr-only"> {node.name}</span>
        </Button>
      ) : (
        !gone && (
          <Button size="sm" busy={resume.isPending} onClick={() => resume.mutate(undefined)}>
            Uncordon<span className="sr-only"> {node.name}</span>
          </Button>
        )
      )}
      {!gone && node.state !== "draining" && (
        <Button size="sm" onClick={() => setDraining(true)}>
          Drain<span className="sr-only"> {node.name}</span>
        </Button>
      )}
      {draining && <DrainDialog node={node.name} onClose={() => setDraining(false)} />}
      {error && <ErrorNote error={error} />}
    </span>
  );
}

function Cores({ milli }: { milli: number }) {
  return (
    <Figure value={gpus(Math.round(milli / 100) * 100)} unit={milli === 1000 ? "core" : "cores"} />
  );
}

const COLUMNS: Column<Node>[] = [
  {
    id: "name",
    header: "Node",
    cell: (n) => <Cut>{n.name}</Cut>,
    value: (n) => n.name,
    width: 110,
    grow: 1,
    fixed: true,
    narrow: "title",
    sort: "name",
  },
  {
    id: "state",
    header: "State",
    cell: (n) => <NodeState node={n} />,
    value: (n) => n.state,
    width: 110,
    narrow: "end",
    sort: "state",
  },
  {
    id: "rack",
    header: "Rack",
    cell: (n) => (rackOf(n) ? <Cut>{rackOf(n)}</Cut> : <None />),
    value: rackOf,
    width: 90,
    hidden: true,
    narrow: "hide",
    sort: "rack",
  },
  {
    id: "gpus",
    header: "GPUs",
    cell: (n) => (
      <Cut>
        {Object.entries(n.gpus)
          .map(([model, count]) => `${count} × ${model}`)
          .join(", ")}
      </Cut>
    ),
    value: (n) => n.gpus_milli / 1000,
    width: 110,
    grow: 1,
    narrow: "meta",
  },
  {
    id: "use",
    header: "GPUs in use",
    cell: (n) => (
      <Bar
        label={`${gpus(n.gpus_milli - n.free_milli)} of ${gpus(n.gpus_milli)} GPUs are held or out of use`}
        parts={[{ value: n.gpus_milli - n.free_milli, label: "held or out of use" }]}
        whole={n.gpus_milli}
      />
    ),
    width: 110,
    grow: 1,
    narrow: "hide",
  },
  {
    id: "free",
    header: "GPUs free",
    cell: (n) => <Figure value={gpus(n.free_milli)} unit="free" />,
    value: (n) => n.free_milli / 1000,
    width: 80,
    align: "right",
    narrow: "meta",
    sort: "free",
    sortFirst: "desc",
  },
  {
    id: "cpu",
    header: "CPU free",
    cell: (n) => (n.cpu_free_milli == null ? <None /> : <Cores milli={n.cpu_free_milli} />),
    value: (n) => n.cpu_free_milli,
    width: 88,
    align: "right",
    narrow: "hide",
  },
  {
    id: "memory",
    header: "Memory free",
    cell: (n) => (n.memory_free_bytes == null ? <None /> : bytes(n.memory_free_bytes)),
    value: (n) => n.memory_free_bytes,
    width: 100,
    align: "right",
    narrow: "hide",
  },
  {
    id: "price",
    header: "Price",
    cell: (n) => <Money micros={n.price_micros_per_hour} rate />,
    value: (n) => n.price_micros_per_hour / 1e6,
    width: 88,
    align: "right",
    narrow: "hide",
    sort: "price",
    sortFirst: "desc",
  },
  {
    id: "jobs",
    header: "Jobs",
    cell: (n) => n.jobs.length,
    value: (n) => n.jobs.length,
    width: 52,
    align: "right",
    narrow: "hide",
  },
  {
    id: "actions",
    header: "Actions",
    cell: (n) => <NodeActions node={n} />,
    width: 148,
    align: "right",
    narrow: "hide",
  },
];

export const NODE_COLUMNS = COLUMNS;

export function NodeTable({
  nodes,
  error,
  onRetry,
  sort,
  onSort,
  open,
  onOpen,
  fit,
}: {
  nodes: readonly Node[] | undefined;
  error: unknown;
  onRetry: () => void;
  sort: string | undefined;
  onSort: (sort: string | undefined) => void;
  open: string | undefined;
  onOpen: (node: string) => void;
  fit?: boolean;
}) {
  return (
    <Table
      id="nodes"
      label="Nodes"
      columns={COLUMNS}
      rows={nodes}
      rowId={(n) => n.name}
      error={error ?? undefined}
      onRetry={onRetry}
      sort={sort}
      onSort={onSort}
      open={open}
      onOpen={(n) => onOpen(n.name)}
      csv="nodes"
      {...(fit && { fit })}
      empty={<EmptyState title="There are no nodes" command="berth up" />}
    />
  );
}

export function until(at: string | null | undefined): string {
  return at ? `in ${span(Math.max(0, Date.parse(at) - Date.now()))}` : "";
}
