import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { jobFiguresQuery } from "@/api/queries";
import type { Job, JobFigures } from "@/api/types";
import {
  Button,
  EmptyState,
  ErrorState,
  Money,
  Note,
  Panel,
  Segmented,
  Skeleton,
  Stat,
  Stats,
} from "@/design";
import { berth, shell } from "@/design/CommandBar";
import { clock, percent, span } from "@/lib/format";
import { useNow } from "@/lib/now";
import { LineChart } from "@/viz/line-chart/LineChart";
import { charts, interval } from "./figures";
import { FINAL } from "./project";
import type { JobSearch } from "./search";

const route = getRouteApi("/jobs/$job");
const SPANS = [
  { value: "15m", label: "15 m", ms: 900_000 },
  { value: "1h", label: "1 h", ms: 3_600_000 },
  { value: "6h", label: "6 h", ms: 21_600_000 },
  { value: "1d", label: "1 d", ms: 86_400_000 },
  { value: "all", label: "All", ms: 0 },
] as const;

/** What the GPUs and processes of a job did, over time. */
export default function Metrics({ job, search }: { job: Job; search: JobSearch }) {
  const navigate = route.useNavigate();
  const over = FINAL.has(job.state);
  const chosen = SPANS.find((s) => s.value === search.span) ?? SPANS[4];
  const minute = useNow(60_000);
  const [zoom, setZoom] = useState<readonly [number, number]>();
  const query = useMemo(() => {
    if (zoom) return { from: new Date(zoom[0]).toISOString(), to: new Date(zoom[1]).toISOString() };
    if (chosen.ms === 0 || over) return { from: job.started ?? job.submitted };
    return { from: new Date(minute - chosen.ms).toISOString() };
  }, [zoom, chosen.ms, over, job.started, job.submitted, chosen.ms === 0 ? 0 : minute]);
  const figures = useQuery({
    ...jobFiguresQuery(job.id, query),
    refetchInterval: over || zoom ? false : 15_000,
  });
  const drawn = useMemo(() => (figures.data ? charts(figures.data) : []), [figures.data]);

  if (figures.error && !figures.data)
    return <ErrorState error={figures.error} onRetry={() => void figures.refetch()} />;
  if (!figures.data) return <Loading />;
  return (
    <div className="flex flex-col gap-4 p-4">
      <div className="flex flex-wrap items-center gap-2">
        {!over && (
          <Segmented
            label="Time that is shown"
            options={SPANS}
            value={chosen.value}
            onChange={(value) => {
              setZoom(undefined);
              void navigate({
                search: (old) => ({ ...old, span: value === "all" ? undefined : value }),
                replace: true,
              });
            }}
          />
        )}
        {zoom && (
          <Button look="quiet" onClick={() => setZoom(undefined)}>
            {clock(zoom[0])} to {clock(zoom[1])}: show all again
          </Button>
        )}
        <span className="text-12 text-muted">
          Resolution {span(interval(figures.data))}. Drag over a chart to zoom all of them.
        </span>
      </div>
      <Summary data={figures.data} job={job} />
      {figures.data.advice.map((a) => (
        <Note key={a.text}>
          {a.text} It would have saved <Money micros={a.saves_micros} /> in this time.
        </Note>
      ))}
      {drawn.length === 0 ? (
        <EmptyState
          title="Nothing was measured in this time"
          command={berth(`metrics ${shell(job.id)}`)}
        >
          {figures.data.notes.join(" ")}
        </EmptyState>
      ) : (
        <div className="grid grid-cols-1 gap-4 xl:grid-cols-2">
          {drawn.map((c) => (
            <Panel key={c.id} title={c.title}>
              <LineChart
                title={`${c.title} of ${job.name}. ${c.hint}`}
                times={c.times}
                series={c.series}
                unit={c.unit}
                min={c.min}
                max={c.max}
                step={interval(figures.data)}
                syncKey={`job-${job.id}`}
                range={zoom}
                onZoom={(from, to) => setZoom([from, to])}
                onZoomReset={() => setZoom(undefined)}
                height={168}
              />
            </Panel>
          ))}
        </div>
      )}
      {drawn.length > 0 && figures.data.notes.length > 0 && (
        <ul className="text-12 text-muted">
          {figures.data.notes.map((n) => (
            <li key={n}>{n}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Summary({ data, job }: { data: JobFigures; job: Job }) {
  const s = data.summary;
  const measured = data.tasks.some((t) => t.gpus.some((g) => g.times_ms.length > 0));
  if (!measured || job.gpus_milli === 0) return null;
  const kwh = s.energy_joules == null ? undefined : s.energy_joules / 3.6e6;
  return (
    <Stats>
      <Stat label="MFU" note="model FLOPs utilization, estimated">
        {percent(s.mfu == null ? undefined : s.mfu / 10)}
      </Stat>
      <Stat
        label="Idle"
        tone={s.idle_at_end_ms > 600_000 ? "warn" : undefined}
        note={
          s.idle_at_end_ms > 0
            ? `${span(s.idle_at_end_ms)} of it at the end`
            : "GPUs that computed nothing"
        }
      >
        {span(s.idle_ms)}
      </Stat>
      <Stat label="Energy" note="drawn by its GPUs">
        {kwh === undefined ? "–" : `${kwh < 10 ? kwh.toFixed(2) : Math.round(kwh)} kWh`}
      </Stat>
    </Stats>
  );
}

function Loading() {
  return (
    <div data-skeleton aria-busy="true" className="flex flex-col gap-4 p-4">
      <Skeleton width={280} height={28} />
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-2">
        {[1, 2, 3, 4].map((n) => (
          <Skeleton key={n} height={230} />
        ))}
      </div>
    </div>
  );
}
