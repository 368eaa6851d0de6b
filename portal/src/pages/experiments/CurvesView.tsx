import { useQueries, useQuery } from "@tanstack/react-query";
import { LineChart } from "lucide-react";
import { useMemo } from "react";
import { isOpen, type MetricPoint } from "@/api/tracking";
import { ErrorNote, Panel, Segmented, Skeleton, Switch } from "@/design";
import { money, plural, span } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Curves } from "@/viz/xy/Curves";
import { historyQuery, useSettled } from "./data";
import { Hint } from "./FilterField";
import { KeyPicker } from "./KeyPicker";
import { axisTitle, byRun, type CostOf, costOf, curvesOf } from "./model/curves";
import { figure, metricText, namesOf, type Row } from "./model/row";
import { type RunsSearch, X_AXES, type XAxis } from "./search";
import { MOST_CHOSEN, type ViewProps } from "./view";

const MOST_METRICS = 12;
/** The number of runs that the page draws without a selection. */
const USUAL = 20;
const AXES: Record<XAxis, string> = { step: "Step", time: "Time", cost: "Cost" };

/** Metrics of many runs as curves. */
export default function CurvesView({ rows, chosen, search, set, open }: ViewProps) {
  const drawn = useMemo(
    () => (chosen.length > 0 ? chosen : rows.slice(0, USUAL)).slice(0, MOST_CHOSEN),
    [chosen, rows],
  );
  const names = useMemo(() => namesOf(drawn), [drawn]);
  if (drawn.length === 0) return <Hint>No runs to draw.</Hint>;
  return (
    <MetricCurves
      drawn={drawn}
      names={names.metrics}
      search={search}
      set={set}
      open={open}
      about={
        chosen.length > 0
          ? `${plural(drawn.length, "selected run")}`
          : `The first ${drawn.length} runs of the table. To draw others, select up to ${MOST_CHOSEN} there.`
      }
    />
  );
}

type Shown = Pick<RunsSearch, "metrics" | "x" | "log" | "smooth">;

/** One chart for each metric. The page of a run shows it for that run. */
export function MetricCurves({
  drawn,
  names,
  search,
  set,
  open,
  about,
}: {
  drawn: readonly Row[];
  names: readonly string[];
  search: Shown;
  set: (change: Shown) => void;
  open?: ((run: string) => void) | undefined;
  about?: string;
}) {
  const now = useNow(60_000);
  const plain = names.filter((n) => !/^(berth|system)[./]/.test(n));
  const usual = (plain.length > 0 ? plain : names).slice(0, 4);
  const metrics = (search.metrics ?? usual).slice(0, MOST_METRICS);
  const ids = useMemo(() => drawn.map((r) => r.id), [drawn.map((r) => r.id).join()]);
  const live = drawn.some((r) => isOpen(r.status));
  const x = search.x ?? "step";
  const history = useQueries({
    queries: metrics.map((metric) => historyQuery(metric, ids, live)),
  });
  const paid = useQuery({ ...historyQuery("berth.cost", ids, live), enabled: x === "cost" });
  const costs = useMemo(() => {
    if (x !== "cost") return NO_COSTS;
    const of = byRun(paid.data ?? []);
    return new Map(drawn.map((row) => [row.id, costOf(row, of.get(row.id) ?? [], now)]));
  }, [x, paid.data, drawn, now]);
  const smoothing = useSettled(search.smooth ?? 0, 60);
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <KeyPicker
          label="Metrics"
          icon={LineChart}
          groups={[{ label: "Metrics", keys: names.map((n) => `metrics.${n}`) }]}
          value={metrics.map((m) => `metrics.${m}`)}
          most={MOST_METRICS}
          onChange={(keys) => set({ metrics: keys.map((k) => k.slice("metrics.".length)) })}
          reset={() => set({ metrics: undefined })}
        />
        <Segmented
          label="Horizontal axis"
          options={X_AXES.map((value) => ({ value, label: AXES[value] }))}
          value={x}
          onChange={(to) => set({ x: to === "step" ? undefined : to })}
        />
        <Switch
          label="Logarithmic"
          checked={search.log ?? false}
          onChange={(on) => set({ log: on || undefined })}
        />
        <label className="flex items-center gap-2">
          <span>Smoothing</span>
          <input
            type="range"
            min={0}
            max={0.99}
            step={0.01}
            value={search.smooth ?? 0}
            onChange={(e) => set({ smooth: Number(e.target.value) || undefined })}
            className="w-28 accent-accent"
          />
          <span className="w-8 text-12 text-muted tabular-nums">
            {(search.smooth ?? 0).toFixed(2)}
          </span>
        </label>
        {about && <span className="text-12 text-muted">{about}</span>}
      </div>
      {metrics.length === 0 && <Hint>These runs have no metrics yet.</Hint>}
      <div className="grid grid-cols-1 gap-3 xl:grid-cols-2">
        {metrics.map((metric, i) => {
          const query = history[i];
          return (
            <Panel key={metric} title={metric}>
              {query?.error && !query.data ? (
                <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
              ) : query?.data && (x !== "cost" || paid.data || paid.error) ? (
                <One
                  metric={metric}
                  points={query.data}
                  drawn={drawn}
                  x={x}
                  costs={costs}
                  log={search.log ?? false}
                  smoothing={smoothing}
                  open={open}
                />
              ) : (
                <Skeleton height={260} />
              )}
            </Panel>
          );
        })}
      </div>
    </div>
  );
}

const NO_COSTS: ReadonlyMap<string, CostOf> = new Map();

function One({
  metric,
  points,
  drawn,
  x,
  costs,
  log,
  smoothing,
  open,
}: {
  metric: string;
  points: readonly MetricPoint[];
  drawn: readonly Row[];
  x: XAxis;
  costs: ReadonlyMap<string, CostOf>;
  log: boolean;
  smoothing: number;
  open: ((run: string) => void) | undefined;
}) {
  const lines = useMemo(
    () => curvesOf(drawn, points, x, costs).map((c) => ({ ...c, key: c.run })),
    [drawn, points, x, costs],
  );
  const unknown = [...costs.values()].filter((c) => c.known === "none").length;
  return (
    <>
      <Curves
        title={`${metric} of ${plural(lines.length, "run")}`}
        lines={lines}
        xTitle={axisTitle(x, costs.values())}
        yTitle={metric}
        xText={TEXTS[x]}
        yText={(value) => metricText(metric, value)}
        yLog={log}
        smoothing={smoothing}
        {...(open && { onOpen: open })}
      />
      {x === "cost" && unknown > 0 && (
        <p className="mt-1 text-12 text-muted">
          {plural(unknown, "run")} without a cost {unknown === 1 ? "is" : "are"} left out: Berth
          knows the cost of its own jobs.
        </p>
      )}
    </>
  );
}

const TEXTS: Record<XAxis, (value: number) => string> = {
  step: (v) => (Math.abs(v) >= 10_000 ? v.toLocaleString("en-US") : figure(v)),
  time: (v) => span(Math.round(v)),
  cost: (v) => money(v * 1e6, { short: true }),
};
