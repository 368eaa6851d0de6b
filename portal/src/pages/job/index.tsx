import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { FlaskConical, Waypoints } from "lucide-react";
import { lazy, Suspense } from "react";
import { asApiError } from "@/api/error";
import { jobQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job } from "@/api/types";
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
  Tabs,
} from "@/design";
import { plural } from "@/lib/format";
import { JobActions } from "./Actions";
import { commandOf } from "./command";
import { Elements } from "./overview/Elements";
import { Overview } from "./overview/Overview";
import { isArray } from "./project";
import { OverviewSkeleton, TabSkeleton } from "./Skeletons";
import { type JobSearch, type JobTab, TABS } from "./search";
import { useSticky } from "./sticky";

const route = getRouteApi("/jobs/$job");
const Logs = lazy(() => import("./logs/Logs"));
const Metrics = lazy(() => import("./Metrics"));
const Events = lazy(() => import("./Events"));
const Files = lazy(() => import("./Files"));
const JobFile = lazy(() => import("./JobFile"));
const Shell = lazy(() => import("./Shell"));

const LABELS: Record<JobTab, string> = {
  overview: "Overview",
  logs: "Logs",
  metrics: "Metrics",
  events: "Events",
  files: "Files",
  file: "Job file",
  terminal: "Terminal",
};

export default function JobPage() {
  const { job: id } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const tab = search.tab ?? "overview";
  const query = useQuery(jobQuery(id));
  const job = query.data;
  const error = useSticky(query);
  const go = (to: JobTab) =>
    void navigate({ search: (old) => ({ ...old, tab: to === "overview" ? undefined : to }) });
  useTabKeys(go);
  if (error && !job)
    return (
      <Page
        title={`Job ${id}`}
        path={PATH}
        actions={<LinkButton to="/jobs">All jobs</LinkButton>}
        command={berth("ps", { "--all": true })}
      >
        <ErrorState
          error={error}
          {...(asApiError(error).status !== 404 && { onRetry: () => void query.refetch() })}
        />
      </Page>
    );
  return (
    <Page
      title={job?.name ?? id}
      path={PATH}
      heading={job ? <Cut>{job.name}</Cut> : id}
      badge={job && <Badge job={job} />}
      actions={
        job && (
          <>
            <Tracked job={job} />
            <JobActions job={job} terminal={false} />
          </>
        )
      }
      command={commandOf(id, tab, search)}
      fill
    >
      {query.error !== null && job && (
        <div className="px-4 pb-2">
          <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      )}
      <Tabs
        label="Views of the job"
        tabs={TABS.map((value) => ({ value, label: LABELS[value] }))}
        value={tab}
        onChange={(to) => go(to)}
      >
        <div
          className={tab === "logs" ? "flex h-full min-h-0 flex-col" : "h-full overflow-y-auto"}
          aria-busy={!job || undefined}
        >
          {job ? (
            <Suspense fallback={<TabSkeleton />}>
              <View key={job.id} tab={tab} job={job} search={search} />
            </Suspense>
          ) : (
            <OverviewSkeleton />
          )}
        </div>
      </Tabs>
    </Page>
  );
}

const PATH = [{ label: "Jobs", to: "/jobs" }];

function Badge({ job }: { job: Job }) {
  const held = job.state === "pending" && job.reason_code === "held";
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
      <span data-testid="job-state">
        <StateBadge state={held ? "held" : job.state} soft />
      </span>
      <span className="flex min-w-0 flex-wrap items-center gap-x-1.5 text-muted">
        <span className="tabular-nums">{job.id}</span>
        <Dot />
        <bdi className="max-w-40 truncate">{job.user}</bdi>
        <Dot />
        <bdi className="max-w-40 truncate">{job.team}</bdi>
        {job.attempts > 1 && (
          <>
            <Dot />
            <span>{plural(job.attempts, "attempt")}</span>
          </>
        )}
      </span>
    </div>
  );
}

/** To the tracked run, and to what the job was made from and what came of it. */
function Tracked({ job }: { job: Job }) {
  return (
    <>
      {job.run && (
        <LinkButton to="/runs/$run" params={{ run: job.run }} icon={FlaskConical}>
          Run
        </LinkButton>
      )}
      <LinkButton to="/lineage" search={{ of: `job:${job.id}` }} icon={Waypoints}>
        Lineage
      </LinkButton>
    </>
  );
}

const WHOSE = { logs: "Logs", terminal: "Terminals", files: "Files" } as const;

function Dot() {
  return (
    <span aria-hidden className="text-faint">
      ·
    </span>
  );
}

/** The tabs in Ctrl-K, and a key for those that one goes to and fro. */
function useTabKeys(go: (tab: JobTab) => void) {
  const keys: Partial<Record<JobTab, string>> = {
    overview: "o",
    logs: "l",
    metrics: "m",
    events: "e",
    terminal: "t",
  };
  useActions(
    TABS.map((tab) => ({
      id: `job-tab:${tab}`,
      group: "This job",
      label: LABELS[tab],
      ...(keys[tab] && { keys: keys[tab] }),
      run: () => go(tab),
    })),
  );
}

function View({ tab, job, search }: { tab: JobTab; job: Job; search: JobSearch }) {
  const array = isArray(job);
  const logs = useMay("LogsRead", job);
  if (array && (tab === "logs" || tab === "terminal" || tab === "files"))
    return (
      <div className="flex flex-col gap-3 p-4">
        <Note>{WHOSE[tab]} are of the elements, not of the array. Open one of them.</Note>
        <Elements job={job} />
      </div>
    );
  switch (tab) {
    case "overview":
      return <Overview job={job} array={array} />;
    case "logs":
      return <Logs job={job} search={search} denied={logs.ok ? undefined : logs.reason} />;
    case "metrics":
      return <Metrics job={job} search={search} />;
    case "events":
      return <Events job={job} />;
    case "files":
      return <Files job={job} path={search.path} />;
    case "file":
      return <JobFile job={job} />;
    case "terminal":
      return <Shell job={job} />;
  }
}
