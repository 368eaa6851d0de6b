import { useQuery } from "@tanstack/react-query";
import { jobQuery, whyQuery } from "@/api/queries";
import type { Job } from "@/api/types";
import {
  berth,
  Cut,
  Drawer,
  ErrorNote,
  Facts,
  Gpu,
  LinkButton,
  Money,
  Skeleton,
  Span,
  StateBadge,
  TextLink,
  Time,
} from "@/design";
import { count, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { TimelineSmall } from "@/viz/timeline/Timeline";
import { JobActions } from "../job/Actions";
import { useProjection, useTimeline } from "../job/data";
import { FINAL, HOLDS, isArray } from "../job/project";
import { sentence, whyModel } from "../job/why";
import { className } from "../new-job/model/rights";

/** A job beside the list. Which one is in the address. */
export function JobDrawer({
  id,
  row,
  onClose,
  onStep,
}: {
  id: string | undefined;
  /** What the list knows of it, at once. */
  row: Job | undefined;
  onClose: () => void;
  onStep: (by: 1 | -1) => void;
}) {
  const query = useQuery({ ...jobQuery(id ?? ""), enabled: id !== undefined });
  const job: Job | undefined = query.data ?? row;
  return (
    <Drawer
      open={id !== undefined}
      onClose={onClose}
      onStep={onStep}
      title={job ? <bdi>{job.name}</bdi> : (id ?? "")}
      subtitle={job && `${job.id} · ${job.user} · ${job.team}`}
      command={berth(`why ${id ?? ""}`)}
      actions={
        job && (
          <>
            <LinkButton to="/jobs/$job" params={{ job: job.id }} look="primary">
              Open job
            </LinkButton>
            <JobActions job={job} terminal={false} />
          </>
        )
      }
    >
      {query.error && !job ? (
        <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
      ) : job ? (
        <Details key={job.id} job={job} />
      ) : (
        <div data-skeleton aria-busy="true" className="flex flex-col gap-3">
          <Skeleton width="40%" />
          <Skeleton width="70%" />
          <Skeleton width="55%" />
        </div>
      )}
    </Drawer>
  );
}

function Details({ job }: { job: Job }) {
  const now = useNow(15_000);
  const p = useProjection(job, now);
  const over = FINAL.has(job.state);
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-3">
        <StateBadge state={job.state} soft />
        <Line job={job} now={now} />
      </div>
      {job.state === "pending" && <Why job={job} now={now} />}
      {over && job.reason && (
        <p className="wrap-anywhere">{sentence(job.exit?.text || job.reason, now)}</p>
      )}
      <Facts
        items={[
          p.endsAt !== undefined && ["Ends about", <Time key="e" at={p.endsAt} as="both" />],
          [
            over ? "Cost" : "Cost so far",
            <span key="c">
              <Money micros={job.cost_micros} />
              {p.projected !== undefined && p.projected > 0 && (
                <span className="text-muted">
                  {" → ~"}
                  <Money micros={p.projected} />
                </span>
              )}
            </span>,
          ],
          ["GPUs", job.gpus_milli > 0 ? <Gpu key="g" milli={job.gpus_milli} /> : "none"],
          job.on.length > 0 && ["Runs on", job.on.join(", ")],
          (HOLDS.has(job.state) || (over && Boolean(job.started))) && [
            over ? "Ran for" : "Running for",
            <Span key="r" from={job.started ?? null} to={job.ended ?? null} />,
          ],
          ["Submitted", <Time key="s" at={job.submitted} as="both" />],
          Boolean(job.ended) && ["Ended", <Time key="x" at={job.ended} as="both" />],
          ["Priority", className(job.priority)],
          job.attempts > 0 && ["Attempts", count(job.attempts)],
          Boolean(job.project) && [
            "Project",
            <TextLink key="p" to="/jobs" search={{ project: job.project }}>
              <Cut>{job.project}</Cut>
            </TextLink>,
          ],
          Boolean(job.experiment) && [
            "Experiment",
            <TextLink key="x" to="/jobs" search={{ experiment: job.experiment }}>
              <Cut>{job.experiment}</Cut>
            </TextLink>,
          ],
          Boolean(job.comment) && ["Comment", <bdi key="m">{job.comment}</bdi>],
        ]}
      />
    </div>
  );
}

function Line({ job, now }: { job: Job; now: number }) {
  const { drawn, error } = useTimeline(job);
  if (drawn) return <TimelineSmall attempts={drawn} now={now} width={240} />;
  // The page of the job says what went wrong; here it would push all else aside.
  return error || isArray(job) ? null : <Skeleton width={240} />;
}

function Why({ job, now }: { job: Job; now: number }) {
  const why = useQuery(whyQuery(job.id));
  const model = why.data && whyModel(why.data, now);
  if (why.error) return <ErrorNote error={why.error} onRetry={() => void why.refetch()} />;
  if (!model)
    return (
      <div data-skeleton>
        <Skeleton width="80%" height={18} />
      </div>
    );
  const others = model.others.length;
  return (
    <div className="flex flex-col gap-1">
      <p className="text-14">
        {model.main?.sentence ?? "Nothing stands in its way; it starts next."}
      </p>
      {model.p50 !== undefined && (
        <p className="font-medium">
          Starts about <Time at={model.p50} as="clock" />
          {model.p90 !== undefined && (
            <span className="font-normal text-muted">
              {" "}
              (90&nbsp;% chance by <Time at={model.p90} as="clock" />)
            </span>
          )}
        </p>
      )}
      {(others > 0 || model.choices.length > 0) && (
        <TextLink to="/jobs/$job" params={{ job: job.id }} className="text-12">
          {[
            others > 0 && plural(others, "other reason"),
            model.choices.length > 0 && plural(model.choices.length, "choice"),
          ]
            .filter(Boolean)
            .join(", ")}
        </TextLink>
      )}
    </div>
  );
}
