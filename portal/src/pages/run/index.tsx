import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useMemo } from "react";
import { artifactPath, experimentQuery, runQuery, teamOf } from "@/api/tracking";
import { InLine, RecordPage, useTabActions } from "@/app/RecordPage";
import { berth, LinkButton, Note, StateBadge, shell } from "@/design";
import { rowOf, statusOf } from "../experiments/model/row";
import { plainName } from "../experiments/teams";
import { RunActions } from "./Actions";
import { curlOf, type RunParts } from "./model";
import { Overview } from "./Overview";
import { Loading } from "./Skeletons";
import type { RunSearch, RunTab } from "./search";

const route = getRouteApi("/runs/$run");
const Metrics = lazy(() => import("./Metrics"));
const Artifacts = lazy(() => import("./Artifacts"));
const Reproduce = lazy(() => import("./Reproduce"));

const LABELS: Record<RunTab, string> = {
  overview: "Overview",
  metrics: "Metrics",
  artifacts: "Artifacts",
};
const KEYS = { overview: "o", metrics: "m", artifacts: "a" };

export default function RunPage() {
  const { run: id } = route.useParams();
  const search = route.useSearch() as RunSearch;
  const navigate = route.useNavigate();
  const tab = search.tab ?? "overview";
  const set = (change: Partial<RunSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const go = (to: RunTab) =>
    void navigate({ search: (old) => ({ ...old, tab: to === "overview" ? undefined : to }) });
  const reproduce = () => set({ reproduce: true });
  useTabActions("run", LABELS, KEYS, go, [
    { id: "run-reproduce", group: "This run", label: "Reproduce", keys: "r", run: reproduce },
  ]);

  const query = useQuery(runQuery(id));
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
  const above = experiment && {
    label: plainName(experiment),
    to: `/experiments/${encodeURIComponent(experiment.experiment_id)}`,
  };
  return (
    <RecordPage
      title={run?.info.run_name || id}
      path={above ? [...PATH, above] : PATH}
      query={query}
      missing={{
        title: `Run ${id}`,
        actions: <LinkButton to="/experiments">All experiments</LinkButton>,
        command: berth("runs"),
      }}
      badge={parts && <Badge parts={parts} />}
      actions={parts && <RunActions parts={parts} onReproduce={reproduce} />}
      command={
        parts && tab === "artifacts"
          ? curlOf(parts.root, search)
          : berth(`runs show ${shell(id)}`, { "--team": parts?.team })
      }
      note={
        run?.info.lifecycle_stage === "deleted" && (
          <Note tone="warn">
            This run is deleted. Lists omit it. You can restore it until the server removes it for
            good.
          </Note>
        )
      }
      tabsLabel="Views of the run"
      tabs={LABELS}
      tab={tab}
      onTab={go}
      scrollsItself={tab === "artifacts"}
      loading={<Loading />}
      drawer={
        parts &&
        search.reproduce && (
          <Reproduce parts={parts} onClose={() => set({ reproduce: undefined })} />
        )
      }
    >
      {parts && (
        <Suspense fallback={<Loading />}>
          {tab === "overview" && <Overview parts={parts} experiment={experiment} />}
          {tab === "metrics" && <Metrics parts={parts} search={search} set={set} />}
          {tab === "artifacts" && <Artifacts parts={parts} search={search} set={set} />}
        </Suspense>
      )}
    </RecordPage>
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
      <InLine>
        <bdi className="max-w-40 truncate">{row.user}</bdi>
        {team && <bdi className="max-w-40 truncate">{team}</bdi>}
      </InLine>
    </div>
  );
}
