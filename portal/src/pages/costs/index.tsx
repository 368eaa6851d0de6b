import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { costQuery } from "@/api/queries";
import { useMay, useTeamNames } from "@/api/session";
import type { CostReport, CostRow, CostSeries } from "@/api/types";
import {
  Button,
  berth,
  Chip,
  type Column,
  Cut,
  EmptyState,
  ErrorNote,
  Money,
  None,
  Page,
  Panel,
  Segmented,
  Select,
  Skeleton,
  Stat,
  Stats,
  sorted,
  Table,
  TextLink,
} from "@/design";
import { count, money, percent, plural } from "@/lib/format";
import { teamOrder } from "@/lib/tones";
import { StackColumns } from "@/viz/stack-bar/StackColumns";
import { Budgets } from "./Budgets";
import { IdlePanel } from "./IdlePanel";
import { Rows } from "./Rows";
import { type Scope, seriesQuery } from "./routes";
import { BY, type By, type CostsSearch, type Period, timeOf } from "./search";

const route = getRouteApi("/costs");

const PERIODS: { value: Period; label: string }[] = [
  { value: "month", label: "This month" },
  { value: "last-month", label: "Last month" },
  { value: "7d", label: "7 days" },
  { value: "30d", label: "30 days" },
  { value: "90d", label: "90 days" },
];
const DAY = 86_400_000;
const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
const FILTERS = ["project", "experiment", "user"] as const;

/** What was spent, on what, in vain, and how far the budgets go. */
export default function CostsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const change = (to: CostsSearch) => void navigate({ search: (old) => ({ ...old, ...to }) });
  const by = search.by ?? "team";
  const period = search.period ?? "month";
  const { from, to } = timeOf(period, Date.now());
  const { project, experiment, user } = search;
  const team = search.team;
  const scope: Scope = {
    from,
    ...(to && { to }),
    ...(team && { team }),
    ...(project && { project }),
    ...(experiment && { experiment }),
    ...(user && { user }),
  };
  const report = useQuery(costQuery({ by, ...scope }));
  const series = useQuery(seriesQuery(scope, by));
  const manages = useMay("BudgetsManage");
  const [editing, setEditing] = useState<string>();
  const rows = report.data?.rows;
  return (
    <Page
      title="Costs"
      command={berth("cost", {
        "--by": by,
        "--from": period.endsWith("d") ? period : undefined,
        "--team": team,
        "--project": project,
        "--experiment": experiment,
        "--user": user,
      })}
      actions={
        manages.ok && (
          <Button look="primary" onClick={() => setEditing("")}>
            Set budget
          </Button>
        )
      }
      toolbar={
        <>
          <Select
            aria-label="Period"
            options={PERIODS}
            value={period}
            onChange={(to) => change({ period: to === "month" ? undefined : to })}
          />
          <Segmented
            label="By"
            options={BY.map((value) => ({ value, label: capital(value) }))}
            value={by}
            onChange={(to) => change({ by: to === "team" ? undefined : to, sort: undefined })}
          />
          {FILTERS.map(
            (key) =>
              search[key] && (
                <Chip key={key} onRemove={() => change({ [key]: undefined })}>
                  {`${key} ${search[key]}`}
                </Chip>
              ),
          )}
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {report.error && !report.data ? (
          <ErrorNote error={report.error} onRetry={() => void report.refetch()} />
        ) : (
          <Head report={report.data} />
        )}
        <Panel title={`By day and ${by}`}>
          <Columns by={by} series={series.data} error={series.error} />
        </Panel>
        <div className="grid items-start gap-4 lg:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
          <Panel title={`By ${by}`} flush>
            <Breakdown
              by={by}
              rows={rows}
              error={report.error}
              total={report.data?.total_micros ?? 0}
              sort={search.sort}
              onSort={(sort) => change({ sort })}
              open={search.open}
              onOpen={(open) => change({ open })}
            />
          </Panel>
          <IdlePanel from={from} to={to} team={team} />
        </div>
        <Budgets editing={editing} onEdit={setEditing} />
      </div>
      <Rows
        title={search.open ? `${capital(by)} ${search.open}` : ""}
        scope={search.open === undefined ? undefined : { ...scope, [by]: search.open }}
        onClose={() => change({ open: undefined })}
      />
    </Page>
  );
}

function Head({ report }: { report: CostReport | undefined }) {
  if (!report) return <Skeleton height={72} />;
  const hours = report.rows.reduce((sum, row) => sum + (row.gpu_ms ?? 0), 0) / 3_600_000;
  const jobs = report.rows.reduce((sum, row) => sum + (row.jobs ?? 0), 0);
  const all = report.total_micros + report.idle_micros;
  return (
    <Stats>
      <Stat label="Spent by jobs" note={plural(jobs, "job")}>
        <Money micros={report.total_micros} />
      </Stat>
      <Stat
        label="Paid for, not allocated"
        note={
          all > 0
            ? `${percent((100 * report.idle_micros) / all)} of ${money(all)} in all`
            : undefined
        }
      >
        <Money micros={report.idle_micros} />
      </Stat>
      <Stat label="GPU-hours" note="held by jobs">
        {count(hours, hours < 10 ? 2 : 0)}
      </Stat>
      <Stat label="Price of a GPU-hour" note="on average">
        {hours > 0.01 ? <Money micros={Math.round(report.total_micros / hours)} /> : <None />}
      </Stat>
      {report.energy_mj != null && (
        <Stat label="Energy" note="drawn by the GPUs">
          {energy(report.energy_mj)}
        </Stat>
      )}
    </Stats>
  );
}

function Columns({
  by,
  series,
  error,
}: {
  by: By;
  series: CostSeries | undefined;
  error: unknown;
}) {
  const teams = useTeamNames();
  const order = useMemo(
    () => (by === "team" && series ? teamOrder(teams, series.keys) : undefined),
    [by, series, teams],
  );
  const shaped = useMemo(() => series && columnsOf(series, order), [series, order]);
  if (error) return <ErrorNote error={error} />;
  if (!shaped) return <Skeleton height={200} />;
  if (shaped.points.every((point) => point.values.every((value) => value === 0)))
    return <p className="text-muted">Nothing was spent in this time.</p>;
  return (
    <StackColumns
      title="Spent by day"
      keys={shaped.keys}
      points={shaped.points}
      step={DAY}
      format={(v) => money(v)}
      tick={(v) => money(v, { short: true })}
      height={220}
    />
  );
}

/** `order` says which colour a key has; its place where left out. */
export function columnsOf(series: CostSeries, order: readonly string[] = series.keys) {
  const others = series.points.some((p) => p.others_micros !== 0);
  const idle = series.points.some((p) => p.idle_micros !== 0);
  const keys = [
    ...series.keys.map((key) => ({ key, label: key || "none", tone: order.indexOf(key) })),
    ...(others ? [{ key: "\u0000others", label: "others", tone: 7, quiet: true }] : []),
    ...(idle ? [{ key: "\u0000idle", label: "not allocated", tone: 7, hatched: true }] : []),
  ];
  const points = series.points.map((point) => ({
    at: Date.parse(point.at),
    values: [
      ...series.keys.map((key) => point.amounts[key] ?? 0),
      ...(others ? [point.others_micros] : []),
      ...(idle ? [point.idle_micros] : []),
    ],
  }));
  return { keys, points };
}

function Breakdown({
  by,
  rows,
  error,
  total,
  sort,
  onSort,
  open,
  onOpen,
}: {
  by: By;
  rows: CostRow[] | undefined;
  error: unknown;
  total: number;
  sort: string | undefined;
  onSort: (sort: string | undefined) => void;
  open: string | undefined;
  onOpen: (key: string) => void;
}) {
  const key = (row: CostRow) => row[by] ?? "";
  const all: Column<CostRow>[] = [
    {
      id: "key",
      header: capital(by),
      cell: (r) =>
        by === "job" && key(r) ? (
          <span className="flex min-w-0 items-baseline gap-1.5">
            <TextLink to="/jobs/$job" params={{ job: key(r) }} className="min-w-0 truncate">
              <bdi>{r.name ?? key(r)}</bdi>
            </TextLink>
            {r.name && <span className="shrink-0 text-12 text-faint">{key(r)}</span>}
          </span>
        ) : (
          <Cut>{key(r) || "none"}</Cut>
        ),
      value: key,
      width: 130,
      grow: 1,
      fixed: true,
      narrow: "title",
      sort: "key",
    },
    {
      id: "jobs",
      header: "Jobs",
      cell: (r) => count(r.jobs ?? 0),
      value: (r) => r.jobs,
      width: 70,
      align: "right",
      narrow: "meta",
      sort: "jobs",
      sortFirst: "desc",
    },
    {
      id: "hours",
      header: "GPU-hours",
      cell: (r) => count(Math.round((r.gpu_ms ?? 0) / 360_000) / 10, 1),
      value: (r) => (r.gpu_ms ?? 0) / 3_600_000,
      width: 104,
      align: "right",
      narrow: "meta",
      sort: "hours",
      sortFirst: "desc",
    },
    {
      id: "energy",
      header: "Energy",
      cell: (r) => (r.energy_mj == null ? <None /> : energy(r.energy_mj)),
      value: (r) => (r.energy_mj == null ? null : r.energy_mj / 3.6e9),
      width: 90,
      align: "right",
      hidden: true,
      narrow: "hide",
    },
    {
      id: "share",
      header: "Share",
      cell: (r) => (total > 0 ? part((r.amount_micros ?? 0) / total) : <None />),
      width: 64,
      align: "right",
      narrow: "hide",
    },
    {
      id: "amount",
      header: "Spent",
      cell: (r) => <Money micros={r.amount_micros} />,
      value: (r) => (r.amount_micros ?? 0) / 1e6,
      width: 110,
      align: "right",
      narrow: "end",
      sort: "amount",
      sortFirst: "desc",
    },
  ];
  // A job is one job.
  const columns = by === "job" ? all.filter((c) => c.id !== "jobs") : all;
  return (
    <Table
      id={`costs-${by}`}
      label={`Costs by ${by}`}
      columns={columns}
      rows={rows && sorted(rows, columns, sort ?? "-amount")}
      rowId={key}
      error={error ?? undefined}
      sort={sort ?? "-amount"}
      onSort={onSort}
      open={open}
      onOpen={(r) => onOpen(key(r))}
      fit={(rows?.length ?? 0) <= 50}
      csv={`costs-by-${by}`}
      empty={
        <EmptyState title="Nothing was spent in this time" command="berth run -g 1 -- nvidia-smi" />
      }
    />
  );
}

/** `0 %` of money that was spent would be wrong. */
function part(share: number): string {
  return share > 0 && share < 0.005 ? "<\u00a01\u00a0%" : percent(100 * share);
}

/** Thousandths of joules as `312.4 kWh` or `11.4 MWh`. */
function energy(mj: number): string {
  const kwh = mj / 3.6e9;
  return kwh >= 9_999.5
    ? `${count(kwh / 1000, 1)}\u00a0MWh`
    : `${count(kwh, kwh < 10 ? 2 : 1)}\u00a0kWh`;
}
