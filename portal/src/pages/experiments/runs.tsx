import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Columns3, Ellipsis, Pencil, RotateCcw, Trash2 } from "lucide-react";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { asApiError } from "@/api/error";
import { useChange } from "@/api/queries";
import { useMay } from "@/api/session";
import { type Experiment, experimentQuery, record, teamOf } from "@/api/tracking";
import {
  Button,
  berth,
  Confirm,
  Cut,
  EmptyState,
  ErrorState,
  LinkButton,
  Menu,
  Note,
  Page,
  Skeleton,
  Switch,
  Table,
  Tabs,
  toast,
} from "@/design";
import { count, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { useStored } from "@/lib/stored";
import { useSticky } from "../job/sticky";
import { Bulk } from "./Bulk";
import { changeExperiment, type ExperimentChange } from "./changes";
import { columnsOf, MOST_COLUMNS } from "./columns";
import { MOST_RUNS, useChosen, useRuns } from "./data";
import { FilterField } from "./FilterField";
import { groupsOf, KeyPicker } from "./KeyPicker";
import { filterOf, orderBy, sortFlag } from "./model/filter";
import { namesOf, type Row, sortRows, usualColumns } from "./model/row";
import { NameDialog } from "./NameDialog";
import { type RunsSearch, type RunsView, VIEWS } from "./search";
import { beginCommand, plainName } from "./teams";

const route = getRouteApi("/experiments/$experiment");
const ParallelView = lazy(() => import("./ParallelView"));
const CurvesView = lazy(() => import("./CurvesView"));
const ScatterView = lazy(() => import("./ScatterView"));
const CompareView = lazy(() => import("./CompareView"));

const LABELS: Record<RunsView, string> = {
  table: "Table",
  parallel: "Parallel",
  curves: "Curves",
  scatter: "Scatter",
  compare: "Compare",
};
const PATH = [{ label: "Experiments", to: "/experiments" }];
/** In the address and in a chart. */
export const MOST_CHOSEN = 100;
const ID = (row: Row) => row.id;
const NO_COLUMNS: string[] = [];

/** What the views of runs have in common. */
export interface ViewProps {
  rows: readonly Row[];
  chosen: readonly Row[];
  search: RunsSearch;
  set: (change: Partial<RunsSearch>) => void;
  open: (run: string) => void;
}

export default function ExperimentPage() {
  const { experiment: id } = route.useParams();
  const search = route.useSearch() as RunsSearch & { team?: string };
  const navigate = route.useNavigate();
  const set = (change: Partial<RunsSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const open = (run: string) => void navigate({ to: "/runs/$run", params: { run } });

  // Only the default experiment is another one in each team.
  const header = id === "0" ? search.team : undefined;
  const found = useQuery(experimentQuery(id, header));
  const experiment = found.data;
  const team = experiment && teamOf(experiment.artifact_location);
  const name = experiment ? plainName(experiment) : id;

  const filter = filterOf(search.q);
  // Where not all are here the server has to sort.
  const [large, setLarge] = useState<string>();
  const order = large === filter ? orderBy(search.sort) : undefined;
  const runs = useRuns({
    experiment: id,
    team: header,
    filter,
    deleted: search.deleted ?? false,
    order,
  });
  useEffect(() => {
    if (runs.capped) setLarge(filter);
  }, [runs.capped, filter]);
  const error = useSticky({ data: runs.rows, error: runs.error, failureReason: undefined });
  const minute = useNow(60_000);
  const rows = useMemo(
    () => (runs.rows && !order ? sortRows(runs.rows, search.sort, minute) : runs.rows),
    [runs.rows, search.sort, order, search.sort?.endsWith("duration") ? minute : 0],
  );
  const chosen = useChosen(rows, search.runs);
  const view = search.view ?? "table";

  if (found.error && !experiment)
    return (
      <Page
        title={`Experiment ${id}`}
        path={PATH}
        actions={<LinkButton to="/experiments">All experiments</LinkButton>}
        command={berth("experiments list", { "--all": true })}
      >
        <ErrorState
          error={found.error}
          {...(asApiError(found.error).status !== 404 && { onRetry: () => void found.refetch() })}
        />
      </Page>
    );

  const props: ViewProps | undefined = rows && { rows, chosen, search, set, open };
  return (
    <Page
      title={name}
      path={PATH}
      heading={<Cut>{name}</Cut>}
      badge={experiment && <About experiment={experiment} team={team} />}
      actions={experiment && <Actions experiment={experiment} name={name} team={team} />}
      fill
      command={berth("runs", {
        "--experiment": experiment ? name : id,
        "--team": team,
        "--filter": filter,
        "--sort": sortFlag(search.sort),
        "--columns": search.cols && ["run_id", "name", ...search.cols.map(cliColumn)],
      })}
      toolbar={
        <>
          <FilterField
            value={search.q}
            onChange={(q) => set({ q })}
            error={error}
            names={useNames(runs.rows)}
          />
          <Progress runs={runs} />
          <Switch
            label="Deleted ones"
            checked={search.deleted ?? false}
            onChange={(on) => set({ deleted: on || undefined, runs: undefined })}
          />
        </>
      }
    >
      <Tabs
        label="Views of the runs"
        tabs={VIEWS.map((value) => ({
          value,
          label: LABELS[value],
          ...(value === "compare" && chosen.length > 0 && { count: chosen.length }),
        }))}
        value={view}
        onChange={(to) => set({ view: to === "table" ? undefined : to })}
      >
        {view === "table" ? (
          <RunsTable
            id={id}
            rows={rows}
            first={runs.rows}
            search={search}
            set={set}
            open={open}
            team={team}
            runs={runs}
            error={error}
          />
        ) : (
          <div className="h-full overflow-y-auto" aria-busy={!props || undefined}>
            {props ? (
              <Suspense fallback={<Skeleton height={420} className="m-4" />}>
                <Chart view={view} {...props} />
              </Suspense>
            ) : error ? (
              <ErrorState error={error} onRetry={runs.retry} />
            ) : (
              <Skeleton height={420} className="m-4" />
            )}
          </div>
        )}
      </Tabs>
    </Page>
  );
}

function Chart({ view, ...props }: ViewProps & { view: Exclude<RunsView, "table"> }) {
  switch (view) {
    case "parallel":
      return <ParallelView {...props} />;
    case "curves":
      return <CurvesView {...props} />;
    case "scatter":
      return <ScatterView {...props} />;
    case "compare":
      return <CompareView {...props} />;
  }
}

/** Names change seldom: not with every value that comes in. */
function useNames(rows: readonly Row[] | undefined) {
  const size = rows?.length ?? 0;
  return useMemo(() => namesOf(rows ?? []), [size]);
}

function RunsTable({
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
  /** As they were loaded: their first page says which columns are usual. */
  first: readonly Row[] | undefined;
  search: RunsSearch;
  set: (change: Partial<RunsSearch>) => void;
  open: (run: string) => void;
  team: string | undefined;
  runs: ReturnType<typeof useRuns>;
  error: unknown;
}) {
  const [kept, keep] = useStored<string[]>(`runs:${id}`, NO_COLUMNS);
  const names = useNames(first);
  const some = (first?.length ?? 0) > 0;
  const usual = useMemo(() => usualColumns((first ?? []).slice(0, 200)), [id, some]);
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
        // What is wrong with a filter stands at the filter.
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
            <EmptyState title="The filter could not be read">
              What is wrong stands below it.
            </EmptyState>
          ) : filtered ? (
            <EmptyState
              title="No run fits"
              action={
                <Button onClick={() => set({ q: undefined, deleted: undefined })}>All runs</Button>
              }
            />
          ) : (
            <EmptyState title="No runs yet" command={beginCommand()}>
              Runs that a script logs with MLflow&apos;s client show up here, with what they cost. A
              job of Berth has a run of its own: its project is the experiment.
            </EmptyState>
          )
        }
      />
      {runs.capped && (
        <p className="border-line border-t px-4 py-1 text-12 text-muted">
          The first {count(MOST_RUNS)} runs are here. A filter shows the others.
        </p>
      )}
    </div>
  );
}

const NO_ROWS: readonly Row[] = [];

/** How much has come, as long as more is coming. */
function Progress({ runs }: { runs: ReturnType<typeof useRuns> }) {
  return (
    <span role="status" className="min-w-24 text-12 text-muted tabular-nums">
      {runs.rows && runs.loading
        ? `${count(runs.rows.length)} runs, loading…`
        : runs.rows
          ? `${runs.capped ? "First " : ""}${plural(runs.rows.length, "run")}`
          : ""}
    </span>
  );
}

function cliColumn(key: string): string {
  return key === "duration" ? "took" : key === "id" ? "run_id" : key;
}

function About({ experiment, team }: { experiment: Experiment; team: string | undefined }) {
  const note = record(experiment.tags)["mlflow.note.content"];
  return (
    <span className="flex min-w-0 items-center gap-1.5 text-muted">
      <bdi className="max-w-40 truncate">{team}</bdi>
      {experiment.lifecycle_stage === "deleted" && <Note tone="warn">Deleted</Note>}
      {note && <Cut className="max-w-100 max-md:hidden">{note}</Cut>}
    </span>
  );
}

function Actions({
  experiment,
  name,
  team,
}: {
  experiment: Experiment;
  name: string;
  team: string | undefined;
}) {
  const [asked, ask] = useState<"rename" | "delete">();
  const id = experiment.experiment_id;
  const write = useMay("JobsSubmit", { team });
  const manage = useMay("JobsControl", { team });
  const change = useChange(
    (what: ExperimentChange) => changeExperiment(what, team),
    "experiments",
    "runs",
  );
  const isDefault = name === "Default";
  const fixed = isDefault ? "The default experiment of a team stays as it is." : undefined;
  const restore = async () => {
    try {
      await change.mutateAsync({ do: "restore", id });
      toast("The experiment is back, with its runs");
    } catch (e) {
      toast(`Not restored: ${asApiError(e).message}`, { tone: "bad" });
    }
  };
  return (
    <>
      <Menu
        trigger={
          <Button look="secondary" icon={Ellipsis} iconOnly>
            Actions
          </Button>
        }
        items={[
          {
            label: "Rename",
            icon: Pencil,
            denied: fixed ?? write.reason,
            onSelect: () => ask("rename"),
          },
          experiment.lifecycle_stage === "deleted"
            ? {
                label: "Restore",
                icon: RotateCcw,
                denied: manage.reason,
                onSelect: () => void restore(),
              }
            : {
                label: "Delete",
                icon: Trash2,
                danger: true,
                denied: fixed ?? manage.reason,
                onSelect: () => ask("delete"),
              },
        ]}
      />
      {asked === "rename" && (
        <NameDialog
          title="Rename the experiment"
          fields={[
            {
              label: "Name",
              value: name,
              hint: "Scripts that name it in set_experiment make a new one under the old name.",
            },
          ]}
          verb="Rename"
          onClose={() => ask(undefined)}
          onSave={([to]) => change.mutateAsync({ do: "rename", id, name: to ?? "" })}
        />
      )}
      <Confirm
        open={asked === "delete"}
        onClose={() => ask(undefined)}
        title={`Delete ${name} with its runs?`}
        verb="Delete the experiment"
        onConfirm={() => change.mutateAsync({ do: "delete", id })}
      >
        It can be restored. Its name stays taken until then.
      </Confirm>
    </>
  );
}
