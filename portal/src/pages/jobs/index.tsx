import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { jobsQuery, rowsOf, someJobsQuery } from "@/api/queries";
import { useMay, useMe } from "@/api/session";
import type { Job } from "@/api/types";
import { useSticky } from "@/app/sticky";
import {
  Button,
  berth,
  Chip,
  EmptyState,
  Filters,
  LinkButton,
  neighbour,
  Page,
  SearchInput,
  Segmented,
  StateGlyph,
  stateOf,
  Table,
} from "@/design";
import { count } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Bulk } from "./Bulk";
import { COLUMNS, FILTERS } from "./columns";
import { asked, CHIPS, countOf, type Filtered, flags, statesOf, toggled, totalOf } from "./filters";
import { Incomplete } from "./Incomplete";
import { JobDrawer } from "./JobDrawer";
import type { JobsSearch } from "./search";
import { changes, steady } from "./steady";
import { Views } from "./Views";
import { kept } from "./views";

const route = getRouteApi("/jobs");
const ID = (job: Job) => job.id;

export default function JobsPage() {
  const search: Filtered = route.useSearch();
  const navigate = route.useNavigate();
  const me = useMe()?.user;
  const submit = useMay("JobsSubmit");
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const set = (change: Partial<JobsSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const pick = (view: Filtered) => void navigate({ search: () => ({ ...view }) as JobsSearch });

  // What is selected must be seen: another view begins with nothing.
  const view = JSON.stringify(kept(search));
  const [seen, setSeen] = useState(view);
  if (seen !== view) {
    setSeen(view);
    setSelected(new Set());
  }
  const minute = useNow(60_000);
  const filter = useMemo(() => asked(search, search.since ? minute : 0), [search, minute]);
  const list = useInfiniteQuery(jobsQuery(filter));
  const error = useSticky(list);
  const counts = useQuery({
    ...someJobsQuery({ ...filter, state: undefined, sort: undefined, counts: true }, 1),
    staleTime: 10_000,
  }).data?.counts;
  const { rows, label, show } = useSteadyRows(list.data, view, list.isPlaceholderData);
  const open = rows?.find((j) => j.id === search.open);
  const filtered = Object.keys(kept(search)).some((k) => k !== "sort");

  return (
    <Page
      title="Jobs"
      fill
      toolbar={
        <>
          <Views search={search} me={me} onPick={pick} />
          <Segmented
            label="Whose jobs"
            options={WHOSE}
            value={search.user !== undefined && search.user === me ? "mine" : "all"}
            onChange={(who) => set({ user: who === "mine" ? me : undefined })}
          />
          <StateChips search={search} counts={counts} onChange={(state) => set({ state })} />
        </>
      }
      command={berth("ps", flags(search, me))}
    >
      <Incomplete gangs={list.data?.pages[0]?.incomplete} />
      <Table
        id="jobs"
        label="Jobs"
        columns={COLUMNS}
        rows={rows}
        rowId={ID}
        error={error}
        onRetry={() => void list.refetch()}
        stale={list.isPlaceholderData}
        sort={search.sort}
        onSort={(sort) => set({ sort: sort as JobsSearch["sort"] })}
        open={search.open}
        onOpen={(job) => set({ open: job.id })}
        selected={selected}
        onSelect={setSelected}
        bulk={(some) => <Bulk jobs={some} onDone={() => setSelected(new Set())} />}
        total={totalOf(counts, search)}
        more={{
          has: list.hasNextPage,
          loading: list.isFetchingNextPage,
          load: () => void list.fetchNextPage(),
        }}
        csv="jobs"
        toolbar={
          <Filters
            filters={FILTERS}
            value={{ ...search }}
            onChange={(key, value) => set({ [key]: value } as Partial<JobsSearch>)}
          >
            <SearchInput
              label="Search jobs"
              placeholder="Name, comment or tag"
              value={search.q}
              onChange={(q) => set({ q: q || undefined })}
              className="w-60 max-md:w-full"
            />
            {label && (
              <Button size="sm" onClick={show}>
                {label}
              </Button>
            )}
          </Filters>
        }
        empty={<Empty filtered={filtered} clear={() => pick({})} maySubmit={submit.ok} />}
      />
      <JobDrawer
        id={search.open}
        row={open}
        onClose={() => set({ open: undefined })}
        onStep={(by) => {
          const next = neighbour(rows ?? [], ID, search.open, by);
          if (next) set({ open: next });
        }}
      />
    </Page>
  );
}

const WHOSE = [
  { value: "all", label: "All" },
  { value: "mine", label: "Mine" },
] as const;

/** Rows that stay where they are until somebody asks for what is new. */
function useSteadyRows(
  data: Parameters<typeof rowsOf>[0],
  view: string,
  placeholder: boolean,
): { rows: readonly Job[] | undefined; label: string | undefined; show: () => void } {
  const next = useMemo(() => (data ? rowsOf(data) : undefined), [data]);
  const [shown, setShown] = useState<{ view: string; rows: readonly Job[] }>();
  if (!next) return { rows: undefined, label: undefined, show: () => {} };
  // While another view is on its way, the rows of the last one stay.
  const fresh = !shown || (shown.view !== view && !placeholder);
  const now = fresh ? { rows: next, added: 0, gone: 0 } : steady(shown.rows, next, ID);
  if (fresh || (now.rows !== shown.rows && !placeholder)) {
    if (!placeholder || !shown) setShown({ view, rows: now.rows });
  }
  return {
    rows: placeholder && shown ? shown.rows : now.rows,
    label: placeholder ? undefined : changes(now.added, now.gone),
    show: () => setShown({ view, rows: next }),
  };
}

function StateChips({
  search,
  counts,
  onChange,
}: {
  search: Filtered;
  counts: Readonly<Record<string, number>> | undefined;
  onChange: (states: string[] | undefined) => void;
}) {
  const on = statesOf(search);
  return (
    <fieldset className="flex min-w-0 items-center gap-1 overflow-x-auto [scrollbar-width:none]">
      <legend className="sr-only">States</legend>
      {CHIPS.map((state) => (
        <Chip key={state} on={on.includes(state)} onClick={() => onChange(toggled(search, state))}>
          <span className="inline-flex items-center gap-1.5">
            <StateGlyph state={state} size={9} />
            {stateOf(state).word}
            <span className="min-w-3 text-right text-muted tabular-nums">
              {counts ? count(countOf(counts, state)) : ""}
            </span>
          </span>
        </Chip>
      ))}
    </fieldset>
  );
}

function Empty({
  filtered,
  clear,
  maySubmit,
}: {
  filtered: boolean;
  clear: () => void;
  maySubmit: boolean;
}) {
  if (filtered)
    return (
      <EmptyState
        title="No job fits these filters"
        action={<Button onClick={clear}>All jobs</Button>}
      >
        Jobs that ended long ago are not kept for ever.
      </EmptyState>
    );
  return (
    <EmptyState
      title="No jobs yet"
      command="berth run -g 1 -- python train.py"
      action={maySubmit ? <LinkButton to="/new">New job</LinkButton> : undefined}
    >
      Jobs that wait, run and have ended are listed here, with what they cost and why they wait.
      This command starts the first one.
    </EmptyState>
  );
}
