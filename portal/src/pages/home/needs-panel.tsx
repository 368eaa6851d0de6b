import { useQuery } from "@tanstack/react-query";
import { Coins } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useJobAction } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job } from "@/api/types";
import {
  Button,
  Confirm,
  ErrorNote,
  ErrorState,
  LinkButton,
  Money,
  Panel,
  StateGlyph,
  TextLink,
  Time,
  toast,
} from "@/design";
import { clock, count, money, percent, span } from "@/lib/format";
import { useNow } from "@/lib/now";
import { lossOf } from "../job/loss";
import { stopPreviewQuery } from "../job/routes";
import { Sentence } from "../new-job/sentence";
import { useRunsOut } from "./data";
import type { Need } from "./needs";
import { JobName, Nothing, RowsSkeleton } from "./parts";

const MOST = 5;

/** What somebody should look at, each with what to do about it. */
export function NeedsPanel({
  needs,
  loading,
  error,
  retry,
}: {
  needs: readonly Need[];
  loading: boolean;
  error: unknown;
  retry: () => void;
}) {
  const [all, setAll] = useState(false);
  const seen = all ? needs : needs.slice(0, MOST);
  return (
    <Panel title={needs.length > 0 ? `Needs you (${count(needs.length)})` : "Needs you"} flush>
      {loading ? (
        <RowsSkeleton rows={2} label="what needs you" />
      ) : error ? (
        <ErrorState error={error} onRetry={retry} />
      ) : needs.length === 0 ? (
        <Nothing>
          Nothing: no failures since yesterday, no idle GPUs, no job that can never start.
        </Nothing>
      ) : (
        <ul aria-label="Needs you" className="divide-y divide-line">
          {seen.map((need) => (
            <Row
              key={
                need.kind === "budget" ? `b ${need.budget.queue}` : `${need.kind} ${need.job.id}`
              }
              need={need}
            />
          ))}
        </ul>
      )}
      {needs.length > MOST && (
        <div className="border-line border-t px-3 py-2">
          <Button size="sm" onClick={() => setAll(!all)}>
            {all ? "Show less" : `Show all ${count(needs.length)}`}
          </Button>
        </div>
      )}
    </Panel>
  );
}

function Row({ need }: { need: Need }) {
  switch (need.kind) {
    case "failed":
      return <Failed job={need.job} />;
    case "idle":
      return <IdleJob job={need.job} idleMs={need.idleMs} wasted={need.wasted} />;
    case "never":
      return <Never job={need.job} />;
    case "budget":
      return <BudgetRow need={need} />;
    case "paused":
      return <Paused job={need.job} />;
  }
}

/** One line where there is room, two where there is little: what, why, how much, what to do. */
function Line({
  glyph,
  name,
  text,
  figure,
  actions,
  below,
}: {
  glyph: ReactNode;
  name: ReactNode;
  text: ReactNode;
  figure?: ReactNode;
  actions: ReactNode;
  below?: ReactNode;
}) {
  return (
    <li className="px-3 py-2">
      <div className="grid grid-cols-[16px_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-1 lg:grid-cols-[16px_minmax(160px,1fr)_minmax(0,2.4fr)_120px_auto]">
        <span className="grid place-items-center">{glyph}</span>
        <span className="min-w-0">{name}</span>
        <span className="min-w-0 wrap-anywhere max-lg:order-last max-lg:col-span-2 max-lg:col-start-2 lg:line-clamp-2">
          {text}
        </span>
        <span className="text-right text-muted">{figure}</span>
        <span className="flex justify-end gap-1.5 max-lg:order-last max-lg:col-span-2 max-lg:col-start-2 max-lg:justify-start lg:min-w-36">
          {actions}
        </span>
      </div>
      {below && <div className="pt-2 pl-7">{below}</div>}
    </li>
  );
}

function Failed({ job }: { job: Job }) {
  const may = useMay("JobsSubmit", { team: job.team, user: job.user });
  return (
    <Line
      glyph={<StateGlyph state="failed" />}
      name={<JobName id={job.id} name={job.name} />}
      text={<Sentence text={job.exit?.text ?? job.reason ?? "failed"} />}
      figure={<Time at={job.ended} />}
      actions={
        <>
          <LinkButton size="sm" to="/jobs/$job" params={{ job: job.id }} search={{ tab: "logs" }}>
            Logs
          </LinkButton>
          {may.ok && (
            <LinkButton size="sm" to="/new" search={{ clone: job.id }}>
              Clone
            </LinkButton>
          )}
        </>
      }
    />
  );
}

function IdleJob({ job, idleMs, wasted }: { job: Job; idleMs: number; wasted: number }) {
  const may = useMay("JobsControl", { team: job.team, user: job.user });
  const [asks, setAsks] = useState(false);
  const act = useJobAction(job.id);
  const now = useNow(15_000);
  const preview = useQuery({ ...stopPreviewQuery(job.id), enabled: asks });
  return (
    <Line
      glyph={<StateGlyph state="idle" />}
      name={<JobName id={job.id} name={job.name} />}
      text={`Holds its GPUs and has computed nothing for ${span(idleMs)}.`}
      figure={
        <span className="text-warn">
          <Money micros={wasted} /> wasted
        </span>
      }
      actions={
        <>
          <LinkButton
            size="sm"
            to="/jobs/$job"
            params={{ job: job.id }}
            search={{ tab: "metrics" }}
          >
            Metrics
          </LinkButton>
          <Button size="sm" denied={may.reason} onClick={() => setAsks(true)}>
            Stop
          </Button>
          <Confirm
            open={asks}
            onClose={() => setAsks(false)}
            title={`Stop ${job.id} ${job.name}?`}
            loses={lossOf(job, "stop", now, preview.data)}
            verb="Stop job"
            onConfirm={async () => {
              await act.mutateAsync({ kind: "stop" });
              toast(`${job.name} stops`);
            }}
          />
        </>
      }
    />
  );
}

function Never({ job }: { job: Job }) {
  const may = useMay("JobsSubmit", { team: job.team, user: job.user });
  return (
    <Line
      glyph={<StateGlyph state="pending" />}
      name={<JobName id={job.id} name={job.name} />}
      text={
        <>
          Can never start: <Sentence text={job.reason ?? ""} />
        </>
      }
      figure={<Time at={job.submitted} />}
      actions={
        <>
          <LinkButton size="sm" to="/jobs/$job" params={{ job: job.id }}>
            Why
          </LinkButton>
          {may.ok && (
            <LinkButton size="sm" to="/new" search={{ clone: job.id }}>
              Change
            </LinkButton>
          )}
        </>
      }
    />
  );
}

const AT_LIMIT: Record<string, string> = {
  notify: "At the limit its people are notified.",
  block: "At the limit nothing new starts.",
  lower_priority: "At the limit its jobs go after all others.",
  pause: "At the limit its jobs are saved and paused.",
};

function BudgetRow({ need }: { need: Extract<Need, { kind: "budget" }> }) {
  const now = useNow(60_000);
  const { budget: b, part } = need;
  const out = useRunsOut(b.queue);
  return (
    <Line
      glyph={<Coins size={14} aria-hidden className={part >= 100 ? "text-bad" : "text-warn"} />}
      name={
        <span className="flex min-w-0 items-baseline gap-1.5">
          <TextLink to="/costs" search={{ team: b.queue } as never} className="min-w-0 truncate">
            <bdi>{b.queue}</bdi>
          </TextLink>
          <span className="shrink-0 text-12 text-faint">budget</span>
        </span>
      }
      text={
        <>
          {part >= 100 ? "Spent" : `${percent(part)} spent`}: {money(b.spent_micros)} of{" "}
          {money(b.limit_micros)}
          {out && part < 100 && `, runs out about ${clock(out, now)}`}. {AT_LIMIT[b.action]}
        </>
      }
      figure={b.period_to ? <>until {clock(b.period_to, now)}</> : null}
      actions={
        <LinkButton size="sm" to="/costs" search={{ team: b.queue } as never}>
          Costs
        </LinkButton>
      }
    />
  );
}

function Paused({ job }: { job: Job }) {
  const may = useMay("JobsControl", { team: job.team, user: job.user });
  const act = useJobAction(job.id);
  const held = job.reason_code === "held" && job.attempts === 0;
  return (
    <Line
      glyph={<StateGlyph state="paused" />}
      name={<JobName id={job.id} name={job.name} />}
      text={<Sentence text={job.reason ?? "it is paused"} />}
      figure={<Time at={job.submitted} />}
      actions={
        <Button
          size="sm"
          busy={act.isPending}
          denied={may.reason}
          onClick={() =>
            act.mutate(
              { kind: "resume" },
              { onSuccess: () => toast(`${job.name} ${held ? "is released" : "goes on"}`) },
            )
          }
        >
          {held ? "Release" : "Resume"}
        </Button>
      }
      below={act.error ? <ErrorNote error={act.error} /> : undefined}
    />
  );
}
