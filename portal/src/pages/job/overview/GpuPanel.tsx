import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { jobFiguresQuery } from "@/api/queries";
import type { Job } from "@/api/types";
import { ErrorNote, Panel, Skeleton, TextLink } from "@/design";
import { plural } from "@/lib/format";
import { LineChart } from "@/viz/line-chart/LineChart";
import { interval, overall } from "../figures";
import { FINAL } from "../project";

/** Shown beside the chart, where they were measured. */
const FIGURES = ["utilization", "tensor", "gpu-memory", "power", "temperature"];
const MOST = 4;

/** Whether the GPUs of a job work: the mean of all, and how far they are apart. */
export default function GpuPanel({ job }: { job: Job }) {
  const over = FINAL.has(job.state);
  const query = useMemo(
    () => ({ from: job.started ?? job.submitted }),
    [job.started, job.submitted],
  );
  const figures = useQuery({
    ...jobFiguresQuery(job.id, query),
    refetchInterval: over ? false : 15_000,
  });
  const data = figures.data;
  const found = useMemo(
    () => (data ? FIGURES.flatMap((id) => overall(data, id) ?? []) : []),
    [data],
  );
  const drawn = found[0];
  const gpus = new Set(data?.tasks.flatMap((t) => t.gpus.map((g) => `${g.node}/${g.gpu}`))).size;
  const series = useMemo(
    () => drawn && [{ key: "mean", label: gpus > 1 ? "mean" : "GPU", values: drawn.mean, tone: 0 }],
    [drawn, gpus],
  );
  const bands = useMemo(
    () =>
      drawn && gpus > 1
        ? [
            {
              key: "all",
              label: `least to most of ${plural(gpus, "GPU")}`,
              low: drawn.least,
              high: drawn.most,
              tone: 0,
            },
          ]
        : [],
    [drawn, gpus],
  );
  // Figures of long ago are not kept, and an empty panel says nothing.
  if (over && data && !drawn) return null;
  return (
    <Panel
      title={drawn?.title ?? "GPU utilization"}
      actions={
        <TextLink
          to="/jobs/$job"
          params={{ job: job.id }}
          search={{ tab: "metrics" }}
          className="text-12"
        >
          All metrics
        </TextLink>
      }
    >
      {figures.error && !data ? (
        <ErrorNote error={figures.error} onRetry={() => void figures.refetch()} />
      ) : !data ? (
        <div data-skeleton aria-busy="true">
          <Skeleton height={140} />
        </div>
      ) : !drawn || !series ? (
        <p className="text-muted">Nothing was measured yet.</p>
      ) : (
        <div className="grid gap-x-6 gap-y-3 md:grid-cols-[minmax(0,1fr)_auto]">
          <LineChart
            title={`${drawn.title} of ${job.name}`}
            times={drawn.times}
            series={series}
            bands={bands}
            unit={drawn.unit}
            min={0}
            max={100}
            step={interval(data)}
            height={found.length > 3 ? 164 : 124}
            legend="none"
          />
          <dl className="grid grid-cols-2 content-start gap-x-6 gap-y-2 md:grid-cols-1">
            {found.slice(0, MOST).map((one) => (
              <div key={one.title}>
                <dt className="text-12 text-muted">{one.title}</dt>
                <dd className="font-medium tabular-nums">{one.last}</dd>
              </div>
            ))}
          </dl>
        </div>
      )}
    </Panel>
  );
}
