import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useLayoutEffect, useRef, useState } from "react";
import { attemptsQuery, jobFileQuery } from "@/api/queries";
import type { Job } from "@/api/types";
import { Button, EmptyState, ErrorNote, SearchInput, Select } from "@/design";
import { count } from "@/lib/format";
import { LogView } from "@/viz/log-view/LogView";
import { FINAL } from "../project";
import type { JobSearch } from "../search";
import { DownloadLog } from "./DownloadLog";
import { Matches } from "./Matches";
import { type Process, processesOf } from "./processes";
import { TAIL, useLog } from "./use-log";

const route = getRouteApi("/jobs/$job");

/** What a job printed, and goes on printing. */
export default function Logs({
  job,
  search,
  denied,
}: {
  job: Job;
  search: JobSearch;
  denied: string | undefined;
}) {
  const navigate = route.useNavigate();
  const set = (change: Partial<JobSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const attempts = useQuery({ ...attemptsQuery(job.id), enabled: !denied }).data;
  const [whole, setWhole] = useState(search.line !== undefined);
  const over = FINAL.has(job.state);
  const body = useRef<HTMLDivElement>(null);
  const height = useRoom(body);
  if (denied) return <EmptyState title="You may not read this log">{denied}</EmptyState>;

  const numbers = (attempts ?? []).map((a) => a.number);
  const last = numbers.at(-1);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 px-4 py-2">
        {numbers.length > 1 && (
          <Select
            aria-label="Attempt"
            value={String(search.attempt ?? last)}
            options={numbers.map((n) => ({
              value: String(n),
              label: n === last ? `Attempt ${n}, the last` : `Attempt ${n}`,
            }))}
            onChange={(n) =>
              set({ attempt: Number(n) === last ? undefined : Number(n), line: undefined })
            }
          />
        )}
        <SearchInput
          label="Search the whole log"
          placeholder="Search the whole log"
          value={search.q}
          onChange={(q) => set({ q: q || undefined })}
          slash={false}
          className="w-64 max-md:w-0 max-md:min-w-32 max-md:flex-1"
        />
        <span className="flex-1 max-md:hidden" />
        {!whole && (
          <Button look="quiet" onClick={() => setWhole(true)}>
            From the start
          </Button>
        )}
        <DownloadLog job={job} attempt={search.attempt} task={search.task} rank={search.rank} />
      </div>
      {search.q && (
        <Matches
          job={job}
          search={search}
          onRegex={(on) => set({ regex: on || undefined })}
          onJump={(m) => {
            setWhole(true);
            set({
              attempt: m.attempt === last ? undefined : m.attempt,
              task: m.task || undefined,
              rank: m.rank || undefined,
              line: m.line + 1,
            });
          }}
        />
      )}
      <div ref={body} className="min-h-60 flex-1 overflow-hidden border-line border-t">
        {height > 0 && (
          <Lines
            key={`${search.attempt}/${search.task}/${search.rank}/${whole}/${search.line}`}
            job={job}
            search={search}
            whole={whole}
            follow={!over && (search.attempt === undefined || search.attempt === last)}
            height={height}
            onProcess={(p) =>
              set({ task: p.task || undefined, rank: p.rank || undefined, line: undefined })
            }
          />
        )}
      </div>
    </div>
  );
}

function Lines({
  job,
  search,
  whole,
  follow,
  height,
  onProcess,
}: {
  job: Job;
  search: JobSearch;
  whole: boolean;
  follow: boolean;
  height: number;
  onProcess: (process: Process) => void;
}) {
  const file = useQuery(jobFileQuery(job.id)).data;
  const processes = processesOf(job, file);
  const { task = 0, rank = 0 } = search;
  const log = useLog({ job: job.id, attempt: search.attempt, task, rank, whole, follow });
  const chips =
    processes.length > 1
      ? processes.map((p) => ({
          id: p.label,
          label: processes.length > 8 ? p.label : `rank ${p.label}`,
          on: p.task === task && p.rank === rank,
        }))
      : [];
  return (
    <>
      {log.error && (
        <div className="px-4 py-2">
          <ErrorNote error={log.error} onRetry={log.retry} />
        </div>
      )}
      <LogView
        title={`Log of ${job.name}`}
        store={log.store}
        live={follow && log.phase !== "ended"}
        ranks={chips}
        onRank={(id) => {
          const process = processes.find((p) => p.label === id);
          if (process) onProcess(process);
        }}
        line={search.line}
        height={height}
        empty={
          log.phase === "loading" || log.phase === "retrying"
            ? "Loading…"
            : job.state === "pending"
              ? "It has printed nothing: it waits."
              : `It has printed nothing${follow ? " yet" : ""}.`
        }
        wholeLog={whole ? undefined : `The last ${count(TAIL)} lines were loaded.`}
      />
    </>
  );
}

/** How much room there is for lines: what is left below the tools of the log, which may wrap. */
function useRoom(ref: React.RefObject<HTMLElement | null>): number {
  const [height, setHeight] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => {
      const tools = element.querySelector<HTMLElement>(".viz-log-tools")?.offsetHeight ?? TOOLS;
      setHeight(Math.max(180, element.clientHeight - tools - 2));
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, [ref]);
  return height;
}

/** Of the tools, before they are there: one line where it is wide, two where it is not. */
const TOOLS = typeof window !== "undefined" && window.innerWidth < 640 ? 73 : 41;
