import { Columns3 } from "lucide-react";
import { useMemo, useRef } from "react";
import { asApiError } from "@/api/error";
import { Button, EmptyState, Table, toast } from "@/design";
import { count, plural } from "@/lib/format";
import { useStored } from "@/lib/stored";
import { Bulk } from "./Bulk";
import { columnsOf, MOST_COLUMNS } from "./columns";
import { MOST_RUNS, type Runs } from "./data";
import { groupsOf, KeyPicker } from "./KeyPicker";
import { type Row, usualColumns } from "./model/row";
import type { RunsSearch } from "./search";
import { beginCommand } from "./teams";
import { MOST_CHOSEN, useNames } from "./view";

const ID = (row: Row) => row.id;
const NO_COLUMNS: string[] = [];

/** The runs as rows, with the columns that the user chose. */
export function RunsTable({
  id,
  rows,
  first,
  search,
  set,
  open,
  team,
  runs,
  error,
}: {
  id: string;
  rows: readonly Row[] | undefined;
  /** The loaded runs without a filter. The first page decides the default columns. */
  first: readonly Row[] | undefined;
  search: RunsSearch;
  set: (change: Partial<RunsSearch>) => void;
  open: (run: string) => void;
  team: string | undefined;
  runs: Runs;
  error: unknown;
}) {
  const [kept, keep] = useStored<string[]>(`runs:${id}`, NO_COLUMNS);
  const names = useNames(first);
  // The first rows decide the default columns, so that a filter does not change them.
  const seen = useRef<{ id: string; columns: string[] }>(undefined);
  if (first && first.length > 0 && seen.current?.id !== id)
    seen.current = { id, columns: usualColumns(first.slice(0, 200)) };
  const usual = seen.current?.id === id ? seen.current.columns : usualColumns([]);
  const keys = (search.cols ?? (kept.length > 0 ? kept : usual)).slice(0, MOST_COLUMNS);
  const joined = keys.join();
  const columns = useMemo(() => columnsOf(keys), [joined]);
  const selected = useMemo(() => new Set(search.runs), [search.runs]);
  const filtered = Boolean(search.q || search.deleted);
  const refused = asApiError(error ?? new Error("")).kind === "INVALID_PARAMETER_VALUE";
  return (
    <div className="flex h-full min-h-0 flex-col pt-2">
      <Table
        id="runs"
        label="Runs"
        columns={columns}
        rows={refused ? NO_ROWS : rows}
        rowId={ID}
        // The filter field shows errors of the filter.
        error={refused ? undefined : error}
        onRetry={runs.retry}
        stale={runs.stale}
        sort={search.sort}
        onSort={(sort) => set({ sort })}
        onOpen={(row) => open(row.id)}
        selected={selected}
        onSelect={(ids) => {
          const next = [...ids].slice(0, MOST_CHOSEN);
          if (ids.size > MOST_CHOSEN)
            toast(`${MOST_CHOSEN} runs can be selected. The first ${MOST_CHOSEN} are.`);
          set({ runs: next.length > 0 ? next : undefined });
        }}
        bulk={(some) => (
          <Bulk
            rows={some}
            team={team}
            deleted={search.deleted ?? false}
            onView={(view) => set({ view })}
            onDone={() => set({ runs: undefined })}
          />
        )}
        toolbar={
          runs.added > 0 && (
            <Button size="sm" onClick={runs.show}>
              {plural(runs.added, "new run")}
            </Button>
          )
        }
        picker={
          <KeyPicker
            label="Columns"
            icon={Columns3}
            groups={groupsOf(names, ["status", "user", "start", "duration", "id"])}
            value={keys}
            most={MOST_COLUMNS}
            onChange={(cols) => {
              keep(cols);
              set({ cols });
            }}
            reset={() => {
              keep(NO_COLUMNS);
              set({ cols: undefined });
            }}
          />
        }
        csv="runs"
        total={runs.capped ? MOST_RUNS + 1 : undefined}
        empty={
          refused ? (
            <EmptyState title="Berth cannot read the filter">
              The error is below the filter.
            </EmptyState>
          ) : filtered ? (
            <EmptyState
              title="No run matches"
              action={
                <Button onClick={() => set({ q: undefined, deleted: undefined })}>All runs</Button>
              }
            />
          ) : (
            <EmptyState title="No runs yet" command={beginCommand()}>
              A script logs runs with MLflow&apos;s client. Berth logs a run for each job.
            </EmptyState>
          )
        }
      />
      {runs.capped && (
        <p className="border-line border-t px-4 py-1 text-12 text-muted">
          The table has the first {count(MOST_RUNS)} runs. Filter to find the others.
        </p>
      )}
    </div>
  );
}

const NO_ROWS: readonly Row[] = [];
