import { useInfiniteQuery } from "@tanstack/react-query";
import type { Job, LogMatch } from "@/api/types";
import { Button, Checkbox, ErrorNote } from "@/design";
import { clock, count, plural } from "@/lib/format";
import { logSearchQuery } from "../routes";
import type { JobSearch } from "../search";

/** What the server found in the whole log, all lines and not only those that are loaded. */
export function Matches({
  job,
  search,
  onRegex,
  onJump,
}: {
  job: Job;
  search: JobSearch;
  onRegex: (on: boolean) => void;
  onJump: (match: LogMatch) => void;
}) {
  const found = useInfiniteQuery(
    logSearchQuery(job.id, {
      text: search.q,
      regex: Boolean(search.regex),
      attempt: search.attempt,
    }),
  );
  const all = found.data?.pages.flatMap((p) => p.matches) ?? [];
  const last = found.data?.pages.at(-1);
  const total = last?.total;
  return (
    <section
      aria-label="Matches"
      aria-busy={found.isFetching || undefined}
      className="shrink-0 px-4 pb-2"
    >
      <div className="flex flex-wrap items-center gap-3 pb-1 text-12 text-muted">
        <span role="status">
          {total === undefined
            ? found.error
              ? ""
              : "Searching…"
            : `${total === 0 ? "No line matches" : plural(total, "line")}${last?.complete ? "" : " so far"}`}
        </span>
        <Checkbox
          label="Regular expression"
          checked={Boolean(search.regex)}
          onChange={(e) => onRegex(e.target.checked)}
        />
        {all.length === 0 && found.hasNextPage && (
          // One answer looks at a part of a long log, and may find nothing there.
          <Button
            size="sm"
            busy={found.isFetchingNextPage}
            onClick={() => void found.fetchNextPage()}
          >
            Search on
          </Button>
        )}
      </div>
      {found.error && <ErrorNote error={found.error} onRetry={() => void found.refetch()} />}
      {all.length > 0 && (
        <div className="max-h-52 overflow-y-auto rounded-md border border-line bg-surface">
          <ul>
            {all.map((m) => (
              <li
                key={`${m.attempt}/${m.task}/${m.rank}/${m.line}`}
                className="border-line border-b last:border-0"
              >
                <button
                  type="button"
                  onClick={() => onJump(m)}
                  className="flex w-full items-baseline gap-3 px-3 py-0.5 text-left font-mono text-12 outline-offset-[-2px] hover:bg-surface-2"
                >
                  <span className="w-16 shrink-0 text-right text-muted tabular-nums">
                    {count(m.line + 1)}
                  </span>
                  {m.at && <span className="shrink-0 text-muted max-md:hidden">{clock(m.at)}</span>}
                  <span className="shrink-0 text-muted">
                    {m.task > 0 ? `${m.task}.${m.rank}` : `r${m.rank}`}
                  </span>
                  <bdi className="min-w-0 truncate">{m.text}</bdi>
                </button>
              </li>
            ))}
          </ul>
          {found.hasNextPage && (
            <div className="p-2">
              <Button
                size="sm"
                busy={found.isFetchingNextPage}
                onClick={() => void found.fetchNextPage()}
              >
                More
              </Button>
            </div>
          )}
        </div>
      )}
    </section>
  );
}
