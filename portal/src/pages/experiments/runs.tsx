import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { asApiError } from "@/api/error";
import { experimentQuery, teamOf } from "@/api/tracking";
import { useSticky } from "@/app/sticky";
import { berth, Cut, ErrorState, LinkButton, Page, Skeleton, Switch, Tabs } from "@/design";
import { count, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { About, Actions } from "./Actions";
import { type Runs, useChosen, useRuns } from "./data";
import { FilterField } from "./FilterField";
import { filterOf, orderBy, sortFlag } from "./model/filter";
import { sortRows } from "./model/row";
import { RunsTable } from "./RunsTable";
import { type RunsSearch, type RunsView, VIEWS } from "./search";
import { plainName } from "./teams";
import { MOST_COMPARED, useNames, type ViewProps } from "./view";

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

export default function ExperimentPage() {
  const { experiment: id } = route.useParams();
  const search = route.useSearch() as RunsSearch & { team?: string };
  const navigate = route.useNavigate();
  const set = (change: Partial<RunsSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const open = (run: string) => void navigate({ to: "/runs/$run", params: { run } });

  // Each team has its own default experiment, so the id 0 needs the team.
  const header = id === "0" ? search.team : undefined;
  const found = useQuery(experimentQuery(id, header));
  const experiment = found.data;
  const team = experiment && teamOf(experiment.artifact_location);
  const name = experiment ? plainName(experiment) : id;

  const filter = filterOf(search.q);
  // The page sorts the runs by itself. If it has not loaded all of them, the server sorts.
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
      command={
        view === "compare" && chosen.length > 1
          ? berth(
              `runs compare ${chosen
                .slice(0, MOST_COMPARED)
                .map((r) => r.id)
                .join(" ")}`,
              {
                "--team": team,
                "--all": search.same,
              },
            )
          : berth("runs", {
              "--experiment": experiment ? name : id,
              "--team": team,
              "--filter": filter,
              "--sort": sortFlag(search.sort),
              "--columns": search.cols && ["run_id", "name", ...search.cols.map(cliColumn)],
            })
      }
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
            label="Deleted"
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

/** The number of loaded runs. */
function Progress({ runs }: { runs: Runs }) {
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
