import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { jobsQuery, queueQuery, rowsOf } from "@/api/queries";
import type { Job } from "@/api/types";
import { Button, EmptyState, ErrorNote, ErrorState, Panel, Skeleton, TextLink } from "@/design";
import { cx } from "@/lib/cx";
import { clock, count, plural, relative } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Sentence } from "../new-job/sentence";
import { JobDrawer } from "./job-drawer";
import { inOrder, nextOf } from "./line";
import { PriorityDialog } from "./priority-dialog";
import { LINE, WaitingRow } from "./waiting-row";

const STEP = 100;

export function WaitingPanel({
  queue,
  names,
  leaf,
  waiting,
  about,
  filter,
  open,
  onOpen,
}: {
  queue: string | undefined;
  /** The queue and all below it. */
  names: ReadonlySet<string> | undefined;
  leaf: boolean;
  /** How many wait there, also those whose jobs one may not see. */
  waiting: number | undefined;
  /** What the queue is entitled to, in a sentence. */
  about: string | undefined;
  filter: ReactNode;
  open: string | undefined;
  onOpen: (job: string | undefined) => void;
}) {
  const jobs = useInfiniteQuery(
    jobsQuery({ state: "pending", sort: "eta", ...(leaf && queue ? { team: queue } : {}) }),
  );
  // Its own line knows the order where the list does not.
  const line = useQuery({ ...queueQuery(queue ?? ""), enabled: leaf, retry: false });
  const [most, setMost] = useState(STEP);
  const [priority, setPriority] = useState<{ job: Job; to?: string }>();

  const all = useMemo(() => {
    const places = new Map(line.data?.line?.map((l) => [l.id, l.position]));
    const rows: Job[] = rowsOf(jobs.data).filter(
      (j) => j.state === "pending" && (!names || names.has(j.team)),
    );
    return inOrder(
      rows.map((j) => (places.has(j.id) ? { ...j, position: places.get(j.id) ?? null } : j)),
      leaf,
    );
  }, [jobs.data, line.data, names, leaf]);

  const { error, refetch } = jobs;
  const first = jobs.data === undefined;
  const seen = all.slice(0, most);
  const unseen = Math.max(0, (waiting ?? 0) - all.length);
  return (
    <Panel title="Waiting jobs" flush actions={filter}>
      {(about || all.length > 0) && <Head next={nextOf(all)} about={about} />}
      {error && jobs.data && (
        <div className="p-3">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
      {first && !error && <ListSkeleton />}
      {first && error && <ErrorState error={error} onRetry={() => void refetch()} />}
      {!first && all.length === 0 && (
        <EmptyState
          title={queue ? `No job waits in ${queue}` : "No job waits"}
          command={unseen > 0 ? undefined : "berth run -g 1 -- hostname"}
        >
          {unseen > 0
            ? `${plural(unseen, "job")} of other teams wait here; you may not see them.`
            : "A job that cannot start at once stands here, with why and until when."}
        </EmptyState>
      )}
      {all.length > 0 && (
        <div
          aria-hidden
          className={cx(LINE, "h-7 border-line border-b text-12 text-muted max-lg:hidden")}
        >
          <span className="text-right">#</span>
          <span>Job</span>
          <span className="text-right">Needs</span>
          <span>Why it waits</span>
          <span className="text-right">Starts about</span>
          <span className="text-right">Cost</span>
        </div>
      )}
      {all.length > 0 && (
        <ol
          aria-label="Waiting jobs"
          className="divide-y divide-line"
          aria-busy={jobs.isPlaceholderData}
        >
          {seen.map((job, i) => (
            <WaitingRow
              key={job.id}
              job={job}
              place={leaf ? (job.position ?? i + 1) : i + 1}
              showQueue={!leaf}
              line={all}
              open={job.id === open}
              onOpen={() => onOpen(job.id === open ? undefined : job.id)}
              onPriority={(to) => setPriority({ job, ...(to && { to }) })}
            />
          ))}
        </ol>
      )}
      {(most < all.length || jobs.hasNextPage || unseen > 0) && all.length > 0 && (
        <div className="flex items-center gap-3 border-line border-t px-3 py-2 text-12 text-muted">
          {(most < all.length || jobs.hasNextPage) && (
            <Button
              size="sm"
              busy={jobs.isFetchingNextPage}
              onClick={() => {
                setMost(most + STEP);
                if (most + STEP >= all.length && jobs.hasNextPage) void jobs.fetchNextPage();
              }}
            >
              Show more
            </Button>
          )}
          <span>
            {count(seen.length)} of {count(Math.max(all.length, waiting ?? 0))}
            {unseen > 0 &&
              !jobs.hasNextPage &&
              `; ${count(unseen)} of teams whose jobs you may not see`}
          </span>
        </div>
      )}
      {priority && (
        <PriorityDialog
          key={priority.job.id}
          job={priority.job}
          to={priority.to}
          line={all}
          onClose={() => setPriority(undefined)}
        />
      )}
      <JobDrawer
        job={all.find((j) => j.id === open)}
        rows={all}
        onOpen={onOpen}
        onPriority={(job) => setPriority({ job })}
      />
    </Panel>
  );
}

/** Who is next, and why; and what the queue is due. */
function Head({ next, about }: { next: Job | undefined; about: string | undefined }) {
  const now = useNow(15_000);
  return (
    <div className="flex flex-col gap-1 border-line border-b px-3 py-2">
      {next && (
        <p className="wrap-anywhere">
          <span className="font-medium">Next: </span>
          <TextLink to="/jobs/$job" params={{ job: next.id }} className="underline">
            {next.id} <bdi>{next.name}</bdi>
          </TextLink>{" "}
          of <bdi>{next.team}</bdi>
          {next.eta && (
            <>
              ,{" "}
              {Date.parse(next.eta) <= now
                ? "expected to start now"
                : `about ${clock(next.eta, now)} (${relative(next.eta, now)})`}
            </>
          )}
          {next.reason && (
            <span className="text-muted">
              . <Sentence text={next.reason} />.
            </span>
          )}
        </p>
      )}
      {about && (
        <p className="text-12 text-muted wrap-anywhere">
          <Sentence text={about} />
        </p>
      )}
    </div>
  );
}

function ListSkeleton() {
  return (
    <div
      data-skeleton
      role="status"
      aria-label="Loading waiting jobs"
      aria-busy="true"
      className="divide-y divide-line"
    >
      {[1, 2, 3, 4].map((n) => (
        <div key={n} className="flex h-11 items-center gap-4 px-3">
          <Skeleton width={24} />
          <Skeleton width={160} />
          <Skeleton width="40%" />
          <span className="flex-1" />
          <Skeleton width={100} />
        </div>
      ))}
    </div>
  );
}
