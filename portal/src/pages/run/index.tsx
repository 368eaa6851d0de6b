import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { asApiError } from "@/api/error";
import { artifactPath, experimentQuery, runQuery, teamOf } from "@/api/tracking";
import { useActions } from "@/app/keyboard";
import {
  berth,
  Cut,
  ErrorNote,
  ErrorState,
  LinkButton,
  Note,
  Page,
  StateBadge,
  shell,
  Tabs,
} from "@/design";
import { rowOf, statusOf } from "../experiments/model/row";
import { plainName } from "../experiments/teams";
import { useSticky } from "../job/sticky";
import { RunActions } from "./Actions";
import { curlOf, type RunParts } from "./model";
import { Overview } from "./Overview";
import { Loading } from "./Skeletons";
import { type RunSearch, type RunTab, TABS } from "./search";

const route = getRouteApi("/runs/$run");
const Metrics = lazy(() => import("./Metrics"));
const Artifacts = lazy(() => import("./Artifacts"));
const Reproduce = lazy(() => import("./Reproduce"));

const LABELS: Record<RunTab, string> = {
  overview: "Overview",
  metrics: "Metrics",
  artifacts: "Artifacts",
};

export default function RunPage() {
  const { run: id } = route.useParams();
  const search = route.useSearch() as RunSearch;
  const navigate = route.useNavigate();
  const tab = search.tab ?? "overview";
  const set = (change: Partial<RunSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const go = (to: RunTab) =>
    void navigate({ search: (old) => ({ ...old, tab: to === "overview" ? undefined : to }) });
  useActions([
    ...TABS.map((to) => ({
      id: `run-tab:${to}`,
      group: "This run",
      label: LABELS[to],
      keys: to[0] as string,
      run: () => go(to),
    })),
    {
      id: "run-reproduce",
      group: "This run",
      label: "Reproduce",
      keys: "r",
      run: () => set({ reproduce: true }),
    },
  ]);

  const query = useQuery(runQuery(id));
  const error = useSticky(query);
  const run = query.data;
  const experiment = useQuery({
    ...experimentQuery(run?.info.experiment_id ?? "", undefined),
    enabled: run !== undefined,
  }).data;
  const parts = useMemo((): RunParts | undefined => {
    if (!run) return undefined;
    return {
      run,
      row: rowOf(run),
      team: teamOf(run.info.artifact_uri),
      root: artifactPath(run.info.artifact_uri),
    };
  }, [run]);

  if (error && !run)
    return (
      <Page
        title={`Run ${id}`}
        path={PATH}
        actions={<LinkButton to="/experiments">All experiments</LinkButton>}
        command={berth("runs")}
      >
        <ErrorState
          error={error}
          {...(asApiError(error).status !== 404 && { onRetry: () => void query.refetch() })}
        />
      </Page>
    );
  const title = run?.info.run_name || id;
  return (
    <Page
      title={title}
      path={
        experiment
          ? [
              ...PATH,
              {
                label: plainName(experiment),
                to: `/experiments/${encodeURIComponent(experiment.experiment_id)}`,
              },
            ]
          : PATH
      }
      heading={<Cut>{title}</Cut>}
      badge={parts && <Badge parts={parts} />}
      actions={parts && <RunActions parts={parts} onReproduce={() => set({ reproduce: true })} />}
      fill
      command={
        parts && tab === "artifacts"
          ? curlOf(parts.root, search)
          : berth(`runs show ${shell(id)}`, { "--team": parts?.team })
      }
    >
      {query.error !== null && run && (
        <div className="px-4 pb-2">
          <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      )}
      {run?.info.lifecycle_stage === "deleted" && (
        <div className="px-4 pb-2">
          <Note tone="warn">
            This run is deleted. Lists leave it out. It can be restored until the server removes it
            for good.
          </Note>
        </div>
      )}
      <Tabs
        label="Views of the run"
        tabs={TABS.map((value) => ({ value, label: LABELS[value] }))}
        value={tab}
        onChange={(to) => go(to)}
      >
        <div
          className={
            tab === "artifacts" ? "flex h-full min-h-0 flex-col" : "h-full overflow-y-auto"
          }
          aria-busy={!parts || undefined}
        >
          {parts ? (
            <Suspense fallback={<Loading />}>
              {tab === "overview" && <Overview parts={parts} experiment={experiment} />}
              {tab === "metrics" && <Metrics parts={parts} search={search} set={set} />}
              {tab === "artifacts" && <Artifacts parts={parts} search={search} set={set} />}
            </Suspense>
          ) : (
            <Loading />
          )}
        </div>
      </Tabs>
      {parts && search.reproduce && (
        <Suspense>
          <Reproduce parts={parts} onClose={() => set({ reproduce: undefined })} />
        </Suspense>
      )}
    </Page>
  );
}

const PATH = [{ label: "Experiments", to: "/experiments" }];

function Badge({ parts: { row, team } }: { parts: RunParts }) {
  const { state, word } = statusOf(row.status);
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
      <span data-testid="run-status">
        <StateBadge state={state} word={word} soft />
      </span>
      <span className="flex min-w-0 items-center gap-1.5 text-muted">
        <bdi className="max-w-40 truncate">{row.user}</bdi>
        {team && (
          <>
            <span aria-hidden className="text-faint">
              ·
            </span>
            <bdi className="max-w-40 truncate">{team}</bdi>
          </>
        )}
      </span>
    </div>
  );
}
