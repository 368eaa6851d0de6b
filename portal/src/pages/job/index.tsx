import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { FlaskConical, Waypoints } from "lucide-react";
import { lazy, Suspense } from "react";
import { jobQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job } from "@/api/types";
import { InLine, RecordPage, useTabActions } from "@/app/RecordPage";
import { berth, LinkButton, Note, StateBadge } from "@/design";
import { plural } from "@/lib/format";
import { JobActions } from "./Actions";
import { commandOf } from "./command";
import { Elements } from "./overview/Elements";
import { Overview } from "./overview/Overview";
import { isArray } from "./project";
import { OverviewSkeleton, TabSkeleton } from "./Skeletons";
import type { JobSearch, JobTab } from "./search";

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

const KEYS: Partial<Record<JobTab, string>> = {
  overview: "o",
  logs: "l",
  metrics: "m",
  events: "e",
  terminal: "t",
};

export default function JobPage() {
  const { job: id } = route.useParams();
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const tab = search.tab ?? "overview";
  const query = useQuery(jobQuery(id));
  const job = query.data;
  const go = (to: JobTab) =>
    void navigate({ search: (old) => ({ ...old, tab: to === "overview" ? undefined : to }) });
  useTabActions("job", LABELS, KEYS, go);
  return (
    <RecordPage
      title={job?.name ?? id}
      path={PATH}
      query={query}
      missing={{
        title: `Job ${id}`,
        actions: <LinkButton to="/jobs">All jobs</LinkButton>,
        command: berth("ps", { "--all": true }),
      }}
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
      tabsLabel="Views of the job"
      tabs={LABELS}
      tab={tab}
      onTab={go}
      scrollsItself={tab === "logs"}
      loading={<OverviewSkeleton />}
    >
      {job && (
        <Suspense fallback={<TabSkeleton />}>
          <View key={job.id} tab={tab} job={job} search={search} />
        </Suspense>
      )}
    </RecordPage>
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
      <InLine>
        <span className="tabular-nums">{job.id}</span>
        <bdi className="max-w-40 truncate">{job.user}</bdi>
        <bdi className="max-w-40 truncate">{job.team}</bdi>
        {job.attempts > 1 && <span>{plural(job.attempts, "attempt")}</span>}
      </InLine>
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
