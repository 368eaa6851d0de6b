import type { Job } from "@/api/types";
import { LinkButton, Panel, TextLink } from "@/design";
import { clock, gpus, ordinal, relative } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Sentence } from "../new-job/sentence";
import { JobName, Nothing, RowsSkeleton } from "./parts";

const MOST = 8;

/** One's waiting jobs: which place, from when, and why. */
export function MyQueuePanel({
  jobs,
  loading,
  user,
}: {
  jobs: readonly Job[];
  loading: boolean;
  user: string;
}) {
  return (
    <Panel
      title="Waiting"
      flush
      actions={
        jobs.length > MOST ? (
          <LinkButton size="sm" look="quiet" to="/jobs" search={{ user, state: ["pending"] }}>
            {`All ${jobs.length}`}
          </LinkButton>
        ) : undefined
      }
    >
      {loading ? (
        <RowsSkeleton label="waiting jobs" />
      ) : jobs.length === 0 ? (
        <Nothing>None of your jobs waits.</Nothing>
      ) : (
        <ul aria-label="My waiting jobs" className="divide-y divide-line">
          {jobs.slice(0, MOST).map((job) => (
            <Row key={job.id} job={job} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

function Row({ job }: { job: Job }) {
  const now = useNow(15_000);
  return (
    <li className="grid grid-cols-[minmax(0,1fr)_auto] gap-x-3 px-3 py-1.5">
      <JobName id={job.id} name={job.name} />
      <span className="whitespace-nowrap text-right tabular-nums">
        {job.eta && Date.parse(job.eta) <= now ? (
          "about now"
        ) : job.eta ? (
          <>
            about {clock(job.eta, now)}{" "}
            <span className="text-12 text-muted">{relative(job.eta, now)}</span>
          </>
        ) : (
          <span className="text-faint">no start time yet</span>
        )}
      </span>
      <span className="col-span-2 flex min-w-0 gap-2 text-12 text-muted">
        {job.position ? (
          <TextLink to="/queue" search={{ queue: job.team, open: job.id }} className="shrink-0">
            {ordinal(job.position)} in <bdi>{job.team}</bdi>
          </TextLink>
        ) : null}
        <span className="shrink-0">
          {gpus(job.gpus_milli)} {job.gpus_milli === 1000 ? "GPU" : "GPUs"}
        </span>
        {job.reason && (
          <span className="min-w-0 truncate" title={job.reason}>
            <Sentence text={job.reason} />
          </span>
        )}
      </span>
    </li>
  );
}
