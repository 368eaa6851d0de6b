import type { Job } from "@/api/types";
import { Cut, LinkButton, Money, None, Panel, Span, StateBadge, Time, Tooltip } from "@/design";
import { gpus, money, percent } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Sparkline } from "@/viz/sparkline/Sparkline";
import { useProjection } from "../job/data";
import type { Busy } from "./data";
import { MOST_FIGURES } from "./data";
import { JobName, Nothing, RowsSkeleton } from "./parts";

/** One's running jobs: how busy, how long, for how much, until when. */
export function RunningPanel({
  jobs,
  busy,
  loading,
  user,
}: {
  jobs: readonly Job[];
  busy: ReadonlyMap<string, Busy>;
  loading: boolean;
  user: string;
}) {
  return (
    <Panel
      title="Running"
      flush
      actions={
        jobs.length > MOST_FIGURES && (
          <LinkButton size="sm" look="quiet" to="/jobs" search={{ user, state: ["running"] }}>
            {`All ${jobs.length}`}
          </LinkButton>
        )
      }
    >
      {loading ? (
        <RowsSkeleton label="running jobs" />
      ) : jobs.length === 0 ? (
        <Nothing>None of your jobs runs now.</Nothing>
      ) : (
        <>
          <div
            aria-hidden
            className={`${LINE} h-7 border-line border-b text-12 text-muted max-md:hidden`}
          >
            <span>Job</span>
            <span className="text-right">GPUs</span>
            <span>Utilization</span>
            <span className="text-right">Runs for</span>
            <span className="text-right">Cost</span>
            <span className="text-right">Ends about</span>
          </div>
          <ul aria-label="My running jobs" className="divide-y divide-line">
            {jobs.slice(0, MOST_FIGURES).map((job) => (
              <Row key={job.id} job={job} busy={busy.get(job.id)} />
            ))}
          </ul>
        </>
      )}
    </Panel>
  );
}

const LINE =
  "grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-3 px-3 md:grid-cols-[minmax(112px,1fr)_44px_112px_72px_92px_76px]";

function Row({ job, busy }: { job: Job; busy: Busy | undefined }) {
  const now = useNow(15_000);
  const { endsAt, projected, basis } = useProjection(job, now);
  return (
    <li className={`${LINE} py-1.5`}>
      <div className="min-w-0">
        <JobName id={job.id} name={job.name} />
        <div className="flex min-w-0 gap-1.5 text-12 text-muted">
          {job.state !== "running" && <StateBadge state={job.state} />}
          <Cut>{job.team}</Cut>
        </div>
      </div>
      <span className="text-right tabular-nums max-md:hidden">
        {job.gpus_milli > 0 ? gpus(job.gpus_milli) : <None />}
      </span>
      <span className="max-md:hidden">
        <Use busy={busy} gpuless={job.gpus_milli === 0} />
      </span>
      <span className="text-right max-md:hidden">
        <Span from={job.started} />
      </span>
      <span className="text-right">
        <Money micros={job.cost_micros} />
        {projected !== undefined && (
          <Tooltip
            text={
              basis === "limit"
                ? `${money(projected)} if it runs up to its time limit`
                : `${money(projected)} if it runs as long as expected`
            }
          >
            <span className="text-12 text-faint md:block">
              {" "}
              of ~<Money micros={projected} />
            </span>
          </Tooltip>
        )}
      </span>
      <span className="text-right max-md:col-span-2 max-md:hidden">
        <Time at={endsAt} as="clock" />
      </span>
      <span className="col-span-2 flex gap-3 text-12 text-muted md:hidden">
        <span>
          {gpus(job.gpus_milli)} {job.gpus_milli === 1000 ? "GPU" : "GPUs"}
        </span>
        {busy?.last !== undefined && <span>{percent(busy.last)}</span>}
        <Span from={job.started} />
        {endsAt !== undefined && (
          <span>
            ends <Time at={endsAt} as="clock" />
          </span>
        )}
      </span>
    </li>
  );
}

function Use({ busy, gpuless }: { busy: Busy | undefined; gpuless: boolean }) {
  if (gpuless || !busy || busy.last === undefined)
    return (
      <span className="text-12 text-faint">
        {gpuless ? "no GPUs" : busy ? "not measured" : "–"}
      </span>
    );
  return (
    <span className="flex items-center gap-2">
      <Sparkline
        values={busy.values}
        max={100}
        width={60}
        height={18}
        label={`GPU utilization, now ${percent(busy.last)}`}
      />
      <span className="tabular-nums">{percent(busy.last)}</span>
    </span>
  );
}
