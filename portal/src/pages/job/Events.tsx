import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { onEvents } from "@/api/live";
import { auditQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { AuditRow, Job } from "@/api/types";
import { EmptyState, ErrorState, Note, StateBadge, Time } from "@/design";
import { useTimeline } from "./data";
import { By } from "./overview/TimelinePanel";
import { isArray } from "./project";
import { TabSkeleton } from "./Skeletons";
import { type Happening, happenings } from "./timeline";
import { sentence } from "./why";

/** What happened to a job, newest first: its states, and what people did. An array has no states. */
export default function Events({ job }: { job: Job }) {
  const array = isArray(job);
  const { drawn, notes, error, retry } = useTimeline(job);
  const live = useLive(job);
  const people = useDeeds(job);
  if (!drawn && error) return <ErrorState error={error} onRetry={retry} />;
  if (!drawn && !array) return <TabSkeleton />;
  const all = merged([...happenings(drawn ?? []), ...people.rows, ...live]);
  if (all.length === 0 && !array) return <EmptyState title="Nothing has happened yet" />;
  return (
    <div className="flex flex-col gap-3 p-4">
      <ol
        aria-label="Events"
        className="divide-y divide-line rounded-md border border-line bg-surface empty:hidden"
      >
        {all.map((h) => (
          <li
            key={`${h.at}-${h.state}-${h.text}`}
            className="grid grid-cols-[auto_1fr] items-baseline gap-x-4 gap-y-0.5 px-3 py-1.5 md:grid-cols-[110px_110px_minmax(0,1fr)_auto]"
          >
            <span className="text-muted">
              <Time at={h.at} as="clock" />
            </span>
            <span>
              {h.state ? (
                <StateBadge state={h.state} />
              ) : (
                <span className="text-muted">action</span>
              )}
            </span>
            <span className="min-w-0 wrap-anywhere max-md:col-span-2">
              {sentence(h.text, Date.now())}
              {h.by && (
                <span className="text-muted">
                  {" "}
                  By <By text={h.by} />.
                </span>
              )}
            </span>
            {h.attempt !== undefined ? (
              <span className="text-12 text-muted max-md:hidden">attempt {h.attempt}</span>
            ) : (
              <span className="max-md:hidden" />
            )}
          </li>
        ))}
      </ol>
      {array && <Note>Each of its elements shows where it waited and ran.</Note>}
      {notes.map((note) => (
        <Note key={note}>{sentence(note, Date.now())}</Note>
      ))}
      {people.denied && <Note>What people did is in the audit log. {people.denied}</Note>}
    </div>
  );
}

/** States as they come while one looks. */
function useLive(job: Job): Happening[] {
  const [seen, setSeen] = useState<Happening[]>([]);
  useEffect(
    () =>
      onEvents((events) => {
        const mine = events.flatMap((e): Happening[] =>
          e.kind === "job" && e.id === job.id
            ? [{ at: Date.parse(e.at), state: e.state, text: e.text || `is ${e.state}` }]
            : [],
        );
        if (mine.length > 0) setSeen((old) => [...mine.reverse(), ...old].slice(0, 200));
      }),
    [job.id],
  );
  return seen;
}

const DEEDS: Record<string, string> = {
  submit_job: "Submitted",
  clone_job: "Cloned",
  stop_job: "Stopped by hand",
  pause_job: "Paused by hand",
  resume_job: "Resumed by hand",
  set_job: "Changed",
  job_shell: "A terminal was opened",
};

function useDeeds(job: Job): { rows: Happening[]; denied: string | undefined } {
  const may = useMay("AuditRead");
  const audit = useInfiniteQuery({
    ...auditQuery({ since: job.submitted, limit: 500 }),
    enabled: may.ok,
  });
  const rows = (audit.data?.pages ?? [])
    .flatMap((p) => p.rows)
    .filter((r) => r.target === `job ${job.id}`);
  return {
    rows: rows.map((r) => ({ at: Date.parse(r.at), state: "", text: deed(r), by: r.who })),
    denied: may.ok ? undefined : may.reason,
  };
}

function deed(row: AuditRow): string {
  const what = DEEDS[row.what] ?? row.what.replaceAll("_", " ");
  if (row.outcome !== "ok") return `${what}: ${row.outcome}`;
  if (row.what !== "set_job") return what;
  try {
    const change = Object.entries(JSON.parse(row.detail) as Record<string, unknown>);
    return `${what}: ${change.map(([k, v]) => `${k} ${String(v)}`).join(", ")}`;
  } catch {
    return what;
  }
}

/** Newest first; what the stream said is dropped where the line says it too. */
export function merged(all: readonly Happening[]): Happening[] {
  const sorted = [...all].sort((a, b) => b.at - a.at);
  const out: Happening[] = [];
  for (const h of sorted) {
    const twin = out.find((o) => o.state && o.state === h.state && Math.abs(o.at - h.at) < 2000);
    if (!twin) out.push(h);
    else if (h.attempt !== undefined && twin.attempt === undefined) out[out.indexOf(twin)] = h;
  }
  return out;
}
