import { useNavigate } from "@tanstack/react-router";
import type { Job } from "@/api/types";
import { ErrorNote, Panel, Skeleton, TextLink } from "@/design";
import { clock, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Timeline } from "@/viz/timeline/Timeline";
import { useTimeline } from "../data";
import { jobIn } from "../timeline";
import { sentence } from "../why";

/** The attempts of a job on one line, and in words who made it give way. */
export function TimelinePanel({ job }: { job: Job }) {
  const now = useNow(5000);
  const navigate = useNavigate();
  const { drawn, notes, error, retry } = useTimeline(job);
  const stops = (drawn ?? []).flatMap((a) =>
    a.segments.filter((s) => s.state === "preempted").map((s) => ({ ...s, attempt: a.number })),
  );
  return (
    <Panel
      title="Timeline"
      actions={
        job.attempts > 0 && (
          <span className="text-12 text-muted">{plural(job.attempts, "attempt")}</span>
        )
      }
    >
      {drawn ? (
        <>
          <Timeline
            title={`Timeline of ${job.name}`}
            attempts={drawn}
            now={now}
            onOpen={(s) => {
              const other = jobIn(s.by);
              if (other) void navigate({ to: "/jobs/$job", params: { job: other } });
            }}
          />
          {stops.length > 0 && (
            <ul className="mt-2 flex flex-col gap-1">
              {stops.slice(-5).map((s) => (
                <li key={s.from} className="text-muted">
                  <span aria-hidden className="text-preempted">
                    ◆
                  </span>{" "}
                  <span className="tabular-nums">{clock(s.from, now)}</span> preempted
                  {s.by && (
                    <>
                      {" "}
                      by <By text={s.by} />
                    </>
                  )}
                  {s.cause && `: ${s.cause}`}
                </li>
              ))}
            </ul>
          )}
          {notes.map((note) => (
            <p key={note} className="mt-2 text-muted">
              {sentence(note, now)}
            </p>
          ))}
        </>
      ) : error ? (
        <ErrorNote error={error} onRetry={retry} />
      ) : (
        <div data-skeleton aria-busy="true">
          <Skeleton height={66} />
        </div>
      )}
    </Panel>
  );
}

/** A job with a link to it, or whoever else it was. */
export function By({ text }: { text: string }) {
  const id = jobIn(text);
  if (!id) return <bdi className="text-fg">{text}</bdi>;
  return (
    <TextLink to="/jobs/$job" params={{ job: id }}>
      <bdi>{text}</bdi>
    </TextLink>
  );
}
