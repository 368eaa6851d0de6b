import { type ReactNode, useMemo, useState } from "react";
import { type MetricPoint, metricNumber } from "@/api/tracking";
import { type Column, Cut, EmptyState, Panel, sorted, Table, TextLink, Time } from "@/design";
import { count } from "@/lib/format";
import { metricText } from "../experiments/model/row";
import type { RunParts } from "./model";

/** A table in a panel. A long table scrolls. */
function Rows<T>({
  id,
  label,
  columns,
  rows,
  rowId,
  empty,
  csv,
}: {
  id: string;
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowId: (row: T) => string;
  empty: ReactNode;
  csv: string;
}) {
  const long = rows.length > 14;
  const [sort, setSort] = useState<string>();
  const shown = useMemo(() => sorted(rows, columns, sort), [rows, columns, sort]);
  return (
    <div className={long ? "flex h-110 flex-col" : undefined}>
      <Table
        id={id}
        label={label}
        columns={columns}
        rows={shown}
        rowId={rowId}
        sort={sort}
        onSort={setSort}
        fit={!long}
        compact
        csv={csv}
        empty={empty}
      />
    </div>
  );
}

const KEY = (pair: { key: string }) => pair.key;

function metricColumns(run: string): Column<MetricPoint>[] {
  return [
    {
      id: "key",
      header: "Metric",
      width: 140,
      grow: 2,
      fixed: true,
      sort: "key",
      narrow: "title",
      value: (m) => m.key,
      cell: (m) => (
        <TextLink
          to="/runs/$run"
          params={{ run }}
          search={{ tab: "metrics", metrics: [m.key] }}
          className="min-w-0"
        >
          <Cut>{m.key}</Cut>
        </TextLink>
      ),
    },
    {
      id: "value",
      header: "Newest value",
      width: 110,
      align: "right",
      sort: "value",
      sortFirst: "desc",
      narrow: "end",
      value: (m) => metricNumber(m.value),
      cell: (m) => <span className="tabular-nums">{metricText(m.key, metricNumber(m.value))}</span>,
    },
    {
      id: "step",
      header: "Step",
      width: 80,
      align: "right",
      sort: "step",
      narrow: "hide",
      value: (m) => m.step,
      cell: (m) => <span className="text-muted tabular-nums">{count(m.step)}</span>,
    },
    {
      id: "at",
      header: "Logged",
      width: 100,
      align: "right",
      narrow: "hide",
      value: (m) => new Date(m.timestamp).toISOString(),
      cell: (m) => <Time at={m.timestamp} />,
    },
  ];
}

/** The newest value of each metric. The name is a link to the curve. */
export function Metrics({ parts: { run, row } }: { parts: RunParts }) {
  const columns = useMemo(() => metricColumns(row.id), [row.id]);
  return (
    <Panel title="Metrics" flush>
      <Rows
        id="run-metrics"
        label="Metrics"
        columns={columns}
        rows={run.data.metrics}
        rowId={KEY}
        csv="metrics"
        empty={
          <EmptyState title="No metrics yet" command={'mlflow.log_metric("loss", 0.5, step=1)'} />
        }
      />
    </Panel>
  );
}

interface Pair {
  key: string;
  value: string;
}

const PARAMS: readonly Column<Pair>[] = [
  {
    id: "key",
    header: "Param",
    width: 120,
    grow: 2,
    fixed: true,
    sort: "key",
    narrow: "title",
    value: (p) => p.key,
    cell: (p) => <Cut>{p.key}</Cut>,
  },
  {
    id: "value",
    header: "Value",
    width: 140,
    grow: 3,
    sort: "value",
    narrow: "end",
    value: (p) => p.value,
    cell: (p) => <Cut>{p.value}</Cut>,
  },
];

export function Params({ parts: { run } }: { parts: RunParts }) {
  return (
    <Panel title="Params" flush>
      <Rows
        id="run-params"
        label="Params"
        columns={PARAMS}
        rows={run.data.params}
        rowId={KEY}
        csv="params"
        empty={<EmptyState title="No params" command={'mlflow.log_param("lr", 0.1)'} />}
      />
    </Panel>
  );
}
