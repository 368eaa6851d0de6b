import { useQuery } from "@tanstack/react-query";
import { helpPage } from "@/api/error";
import { whyQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job } from "@/api/types";
import {
  Button,
  Drawer,
  ErrorNote,
  Facts,
  LinkButton,
  Money,
  neighbour,
  Skeleton,
  Time,
} from "@/design";
import { clock, ordinal, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { useOutlook } from "../job/data";
import { className } from "../new-job/model/rights";
import { Sentence } from "../new-job/sentence";

/** Why one job waits, with everything that stands in its way. */
export function JobDrawer({
  job,
  rows,
  onOpen,
  onPriority,
}: {
  job: Job | undefined;
  rows: readonly Job[];
  onOpen: (job: string | undefined) => void;
  onPriority: (job: Job) => void;
}) {
  return (
    <Drawer
      open={job !== undefined}
      onClose={() => onOpen(undefined)}
      onStep={(by) => {
        const next = neighbour(rows, (r) => r.id, job?.id, by);
        if (next) onOpen(next);
      }}
      title={<bdi>{job?.name ?? ""}</bdi>}
      subtitle={job ? `${job.id} · ${job.user} · ${job.team}` : undefined}
      {...(job && { command: `berth why ${job.id}` })}
      actions={job && <Actions job={job} onPriority={() => onPriority(job)} />}
    >
      {job && <Why job={job} />}
    </Drawer>
  );
}

function Actions({ job, onPriority }: { job: Job; onPriority: () => void }) {
  const may = useMay("JobsControl", { team: job.team, user: job.user });
  return (
    <>
      <LinkButton to="/jobs/$job" params={{ job: job.id }} size="sm">
        Open job
      </LinkButton>
      <Button size="sm" denied={may.reason} onClick={onPriority}>
        Set priority
      </Button>
    </>
  );
}

function Why({ job }: { job: Job }) {
  const now = useNow(15_000);
  const why = useQuery(whyQuery(job.id));
  const { plan } = useOutlook(job);
  const w = why.data;
  if (why.error && !w) return <ErrorNote error={why.error} onRetry={() => void why.refetch()} />;
  if (!w)
    return (
      <div
        data-skeleton
        aria-busy="true"
        role="status"
        aria-label="Loading why it waits"
        className="flex flex-col gap-3"
      >
        <Skeleton width="80%" height={20} />
        <Skeleton width="50%" />
        <Skeleton width="60%" />
      </div>
    );
  const main = w.blockers.find((b) => b.binding) ?? w.blockers[0];
  const others = w.blockers.filter((b) => b !== main);
  return (
    <div className="flex flex-col gap-4">
      {main && (
        <p className="text-16 wrap-anywhere">
          <Sentence text={main.text} /> <Code code={main.code} />
        </p>
      )}
      {w.eta?.p50 && (
        <p>
          Starts about {clock(w.eta.p50, now)}
          {w.eta.p90 && (
            <span className="text-muted"> (90&nbsp;% chance by {clock(w.eta.p90, now)})</span>
          )}
        </p>
      )}
      {w.clears && (
        <p className="text-muted">
          <Sentence text={w.clears} />
        </p>
      )}
      {others.length > 0 && (
        <div>
          <h3 className="mb-1 font-medium">Also in its way</h3>
          <ul className="flex flex-col gap-1.5">
            {others.map((b) => (
              <li key={b.code + b.text} className="wrap-anywhere">
                <Sentence text={b.text} /> <Code code={b.code} />
              </li>
            ))}
          </ul>
        </div>
      )}
      {w.sooner.length > 0 && (
        <div>
          <h3 className="mb-1 font-medium">What would start it sooner</h3>
          <ul className="flex flex-col gap-1">
            {w.sooner.map((s) => (
              <li key={s.change} className="flex flex-wrap justify-between gap-x-3">
                <span>
                  <Sentence text={s.change.charAt(0).toUpperCase() + s.change.slice(1)} />
                </span>
                <span className="text-muted">
                  {s.starts ? clock(s.starts, now) : "now"}
                  {s.stops > 0 && `, stops ${plural(s.stops, "job")}`}
                </span>
              </li>
            ))}
          </ul>
          <p className="mt-1 text-12 text-muted">Apply one on the page of the job.</p>
        </div>
      )}
      <Facts
        items={[
          [
            "Place",
            w.position ? `${ordinal(w.position)} of ${w.waiting} in ${w.queue}` : "Not in line",
          ],
          ["Needs", w.needs],
          ["Priority", className(job.priority)],
          ["Submitted", <Time key="t" at={job.submitted} as="both" />],
          plan?.price_micros_per_hour !== undefined && [
            "Price",
            <Money key="p" micros={plan.price_micros_per_hour} rate />,
          ],
          plan?.total_micros !== undefined && [
            "In total",
            <Money key="m" micros={plan.total_micros} />,
          ],
        ]}
      />
      {w.also.length > 0 && (
        <ul className="flex flex-col gap-1 text-12 text-muted">
          {w.also.map((a) => (
            <li key={a} className="wrap-anywhere">
              <Sentence text={a} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Code({ code }: { code: string }) {
  return (
    <a href={helpPage(code)} className="whitespace-nowrap text-12 text-accent hover:underline">
      {code}
    </a>
  );
}
