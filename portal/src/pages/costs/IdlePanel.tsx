import { useQuery } from "@tanstack/react-query";
import { useGo } from "@/app/routes";
import { ErrorNote, Money, Note, Panel, Skeleton } from "@/design";
import { money, percent, span } from "@/lib/format";
import { BarList } from "@/viz/bar-list/BarList";
import { StackBar } from "@/viz/stack-bar/StackBar";
import { idleQuery } from "./routes";

const NAMES: Record<string, string> = {
  unallocated: "Unallocated",
  fragmented: "Fragmented",
  starting: "Starting",
  held_idle: "Held but unused",
  lost_failed: "Lost with failed jobs",
  lost_machine: "Lost with machines",
};

/** The API tells causes apart for 62 days at a time: here the last ones, and today's. */
const MOST_DAYS = 62;
const DAY = 86_400_000;

/** What was paid for and brought nothing, and who held it. */
export function IdlePanel({
  from,
  to,
  team,
}: {
  from: string;
  to: string | undefined;
  team: string | undefined;
}) {
  const end = to === undefined ? Date.now() : Date.parse(to);
  // Whole days, so that an answer is kept for a while.
  const first = Math.floor(end / DAY) * DAY - (MOST_DAYS - 1) * DAY;
  const cut = Date.parse(from) < first;
  const query = useQuery(idleQuery({ from: cut ? new Date(first).toISOString() : from, to, team }));
  const go = useGo();
  const found = query.data;
  const waste = found?.causes.reduce((sum, cause) => sum + cause.amount_micros, 0) ?? 0;
  return (
    <Panel
      title="Idle and lost, by cause"
      actions={
        found && (
          <span className="text-muted">
            <Money micros={waste} />
            {found.total_micros > 0 && `, ${percent((100 * waste) / found.total_micros)} of all`}
          </span>
        )
      }
    >
      {query.error ? (
        <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
      ) : !found ? (
        <Skeleton height={120} />
      ) : (
        <div className="flex flex-col gap-4">
          {waste === 0 && <p className="text-muted">Nothing was paid for in vain in this time.</p>}
          {waste > 0 && (
            <StackBar
              title="What was paid for and brought nothing"
              parts={found.causes
                .filter((cause) => cause.amount_micros > 0)
                .map((cause, i) => ({
                  key: cause.cause,
                  label: NAMES[cause.cause] ?? cause.text,
                  value: cause.amount_micros,
                  tone: i,
                  hatched: cause.billed,
                }))}
              format={(v) => money(v)}
            />
          )}
          {found.holders.length > 0 && (
            <div>
              <h3 className="mb-1 font-medium text-12 text-muted">
                Jobs that held GPUs and did nothing
              </h3>
              <BarList
                title="Jobs that held GPUs and did nothing"
                items={found.holders.slice(0, 8).map((job) => ({
                  key: String(job.job),
                  label: job.name ?? `job ${job.job}`,
                  value: job.amount_micros,
                  note: [job.user, job.team, `${span(job.gpu_ms)} of a GPU`]
                    .filter(Boolean)
                    .join(", "),
                }))}
                format={(v) => money(v)}
                onOpen={(job) => go(`/jobs/${job}`, { tab: "metrics" })}
              />
            </div>
          )}
          {cut && <Note>Only the last {MOST_DAYS} days are told apart by cause.</Note>}
          {found.notes.map((note) => (
            <Note key={note}>{note}</Note>
          ))}
        </div>
      )}
    </Panel>
  );
}
