import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { budgetsQuery, queuesQuery, sharesQuery } from "@/api/queries";
import { Chip, EmptyState, ErrorNote, ErrorState, Page, Panel, Stat, Stats, shell } from "@/design";
import { count, gpus, span } from "@/lib/format";
import { ShareKey } from "@/viz/share-bar/ShareBar";
import { QueueTree, TreeSkeleton } from "./queue-tree";
import { type Row, rowsOf, within } from "./tree";
import { WaitingPanel } from "./waiting";

const route = getRouteApi("/queue");

export default function QueuePage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  // A team has a queue of its name: the team filter of the top bar filters here, too.
  const chosen = search.queue ?? search.team;
  const queues = useQuery(queuesQuery);
  const shares = useQuery({ ...sharesQuery, retry: 1 });
  const budgets = useQuery({ ...budgetsQuery, retry: false });
  const rows = useMemo(
    () => queues.data && rowsOf(queues.data, shares.data ?? [], budgets.data ?? []),
    [queues.data, shares.data, budgets.data],
  );
  const choose = (queue: string | undefined) =>
    void navigate({ search: (old) => ({ ...old, queue, open: undefined }) });
  const row = rows?.find((r) => r.name === chosen);
  const names = useMemo(() => (chosen && rows ? within(rows, chosen) : undefined), [rows, chosen]);
  const leaf = row !== undefined && row.children.length === 0;

  return (
    <Page title="Queue" command={chosen ? `berth queue ${shell(chosen)}` : "berth queue"}>
      <div className="flex flex-col gap-4">
        {rows && <Figures rows={rows} row={row} />}
        <Panel
          title="Queues"
          flush
          actions={
            <span className="max-md:hidden">
              <ShareKey />
            </span>
          }
        >
          {rows && shares.error && (
            <div className="p-3 pb-0">
              <ErrorNote error={shares.error} onRetry={() => void shares.refetch()} />
            </div>
          )}
          {rows ? (
            rows.length > 0 ? (
              <QueueTree rows={rows} chosen={chosen} onChoose={choose} />
            ) : (
              <EmptyState title="No queues yet" command="berth team add nlp">
                Each team has a queue. What is promised to it, what it uses and who waits stands
                here.
              </EmptyState>
            )
          ) : queues.error ? (
            <ErrorState error={queues.error} onRetry={() => void queues.refetch()} />
          ) : (
            <TreeSkeleton />
          )}
        </Panel>
        <WaitingPanel
          queue={chosen}
          names={names}
          leaf={leaf}
          waiting={
            row?.waiting ?? rows?.filter((r) => r.level === 1).reduce((n, r) => n + r.waiting, 0)
          }
          about={row?.text}
          filter={
            chosen ? (
              <Chip
                name="Queue"
                onRemove={() =>
                  void navigate({
                    search: (old) => ({
                      ...old,
                      queue: undefined,
                      team: undefined,
                      open: undefined,
                    }),
                  })
                }
              >
                {chosen}
              </Chip>
            ) : undefined
          }
          open={search.open}
          onOpen={(open) =>
            void navigate({ search: (old) => ({ ...old, open }), replace: open === undefined })
          }
        />
      </div>
    </Page>
  );
}

/** Of the chosen queue, or of all of them. */
function Figures({ rows, row }: { rows: readonly Row[]; row: Row | undefined }) {
  const tops = row ? [row] : rows.filter((r) => r.level === 1);
  const sum = (of: (r: Row) => number) => tops.reduce((n, r) => n + of(r), 0);
  const waits = rows.filter((r) => r.wait_p50_ms !== undefined);
  const slowest = row ?? [...waits].sort((a, b) => (b.wait_p50_ms ?? 0) - (a.wait_p50_ms ?? 0))[0];
  const quota = sum((r) => r.quota);
  return (
    <Stats>
      <Stat
        label="GPUs in use"
        note={`${quota > 0 ? `of ${gpus(quota * 1000)}` : "no quota of its own"}; ${gpus(sum((r) => r.demand) * 1000)} asked for`}
      >
        {gpus(sum((r) => r.used) * 1000)}
      </Stat>
      <Stat label="Borrowed" note={`${rounded(leaves(rows, row, (r) => r.lent))} lent`}>
        {rounded(leaves(rows, row, (r) => r.borrowed))}
      </Stat>
      <Stat label="Jobs in line" note={`${count(sum((r) => r.running))} running`}>
        {count(sum((r) => r.waiting))}
      </Stat>
      <Stat
        label={row || !slowest ? "Median wait" : `Longest median wait: ${slowest.name}`}
        note={
          slowest?.wait_p90_ms !== undefined
            ? `90\u00a0% waited less than ${span(slowest.wait_p90_ms)}`
            : "of the last day"
        }
      >
        {slowest?.wait_p50_ms !== undefined ? span(slowest.wait_p50_ms) : "–"}
      </Stat>
    </Stats>
  );
}

/** In tenths: shares are fractions that say no more. */
function rounded(n: number): string {
  return gpus(Math.round(n * 10) * 100);
}

/** What is borrowed and lent is counted where jobs wait, or it would be counted on each level. */
function leaves(rows: readonly Row[], row: Row | undefined, of: (r: Row) => number): number {
  const names = row && within(rows, row.name);
  return rows
    .filter((r) => r.children.length === 0 && (!names || names.has(r.name)))
    .reduce((n, r) => n + of(r), 0);
}
