import { EllipsisVertical, GripVertical } from "lucide-react";
import { useState } from "react";
import { useMayFor } from "@/api/session";
import type { Job } from "@/api/types";
import { useGo } from "@/app/routes";
import { Button, Menu, Money, None, TextLink, Tooltip } from "@/design";
import { cx } from "@/lib/cx";
import { absolute, clock, gpus, ordinal } from "@/lib/format";
import { useNow } from "@/lib/now";
import { priceOf } from "../new-job/model/models";
import { CLASSES, className } from "../new-job/model/rights";
import { Sentence } from "../new-job/sentence";
import { useModels } from "../new-job/use-models";
import { classFor } from "./line";

/** The columns of a row and of the head above. */
export const LINE =
  "grid grid-cols-[28px_minmax(0,1fr)_auto_28px] items-center gap-x-3 px-3 lg:grid-cols-[28px_minmax(160px,1.1fr)_88px_minmax(160px,2fr)_136px_84px_28px]";

/** The job that is being dragged; one at a time, and never from elsewhere. */
let dragged: Job | undefined;

export function WaitingRow({
  job,
  place,
  showQueue,
  line,
  open,
  onOpen,
  onPriority,
}: {
  job: Job;
  /** Among those that are shown. */
  place: number;
  showQueue: boolean;
  line: readonly Job[];
  open: boolean;
  onOpen: () => void;
  onPriority: (to?: string) => void;
}) {
  const mayFor = useMayFor();
  const go = useGo();
  const may = mayFor("JobsControl", { team: job.team, user: job.user });
  // Only one queue is shown in its own order; elsewhere up and down would mean something else.
  const drags = may.ok && !showQueue;
  const [over, setOver] = useState<"yes" | "no">();
  return (
    <li
      draggable={drags}
      onDragStart={(e) => {
        dragged = job;
        e.dataTransfer.effectAllowed = "move";
        e.dataTransfer.setData("text/plain", job.id);
      }}
      onDragEnd={() => {
        dragged = undefined;
        setOver(undefined);
      }}
      onDragOver={(e) => {
        if (!dragged || dragged.id === job.id) return;
        const fits = classFor(dragged, job, CLASSES) !== undefined;
        setOver(fits ? "yes" : "no");
        if (fits) e.preventDefault();
      }}
      onDragLeave={() => setOver(undefined)}
      onDrop={(e) => {
        setOver(undefined);
        const to = dragged && classFor(dragged, job, CLASSES);
        if (!to || !dragged) return;
        e.preventDefault();
        drop(dragged, to);
      }}
      ref={(el) => {
        if (el) dropped.set(job.id, onPriority);
        return () => void dropped.delete(job.id);
      }}
      onClick={(e) => {
        if (!(e.target as HTMLElement).closest("a,button,[role=menuitem]")) onOpen();
      }}
      className={cx(
        LINE,
        "group cursor-pointer py-1.5 hover:bg-surface-2",
        open && "bg-surface-2 shadow-[inset_2px_0_0_var(--accent)]",
        over === "yes" && "shadow-[inset_0_2px_0_var(--accent)]",
        over === "no" && "opacity-50",
      )}
    >
      <span className="flex items-center justify-end gap-0.5 text-right text-12 text-muted tabular-nums">
        {drags && (
          <GripVertical
            size={12}
            aria-hidden
            className="shrink-0 cursor-grab text-faint opacity-0 group-hover:opacity-100 max-lg:hidden"
          />
        )}
        {place}
      </span>
      <div className="min-w-0">
        <div className="flex min-w-0 items-baseline gap-1.5">
          <TextLink
            to="/jobs/$job"
            params={{ job: job.id }}
            className="min-w-0 truncate"
            title={job.name}
          >
            <bdi>{job.name}</bdi>
          </TextLink>
          <span className="shrink-0 text-12 text-faint">{job.id}</span>
        </div>
        <div className="flex min-w-0 gap-1.5 truncate text-12 text-muted">
          <bdi className="truncate">{showQueue ? `${job.team} · ${job.user}` : job.user}</bdi>
          {showQueue && job.position ? (
            <span className="shrink-0 text-faint">{ordinal(job.position)} in queue</span>
          ) : null}
          {job.priority !== 50 && (
            <span className="shrink-0 text-faint">{className(job.priority)}</span>
          )}
        </div>
      </div>
      <Need job={job} />
      <div className="min-w-0 text-muted max-lg:order-last max-lg:col-span-3 max-lg:col-start-2 max-lg:text-12">
        {job.reason ? <Reason text={job.reason} /> : <None />}
      </div>
      <Starts job={job} />
      <span className="text-right max-lg:hidden">
        <Cost job={job} />
      </span>
      <Menu
        trigger={
          <Button look="quiet" size="sm" icon={EllipsisVertical} iconOnly>
            {`More for ${job.name}`}
          </Button>
        }
        items={[
          { label: "Set priority", denied: may.reason, onSelect: () => onPriority() },
          "-",
          { label: "Why it waits", onSelect: onOpen },
          { label: "Open job", onSelect: () => go(`/jobs/${job.id}`) },
          showQueue && line.length > 1
            ? { label: `Only ${job.team}`, onSelect: () => go("/queue", { queue: job.team }) }
            : null,
        ]}
      />
    </li>
  );
}

/** The row that was dragged opens the question, wherever it was dropped. */
const dropped = new Map<string, (to?: string) => void>();
function drop(job: Job, to: string) {
  dropped.get(job.id)?.(to);
}

function Need({ job }: { job: Job }) {
  return (
    <span className="truncate text-right tabular-nums max-lg:hidden" title={`Asks for ${job.asks}`}>
      {/^\d+(\.\d+)?$/.test(job.asks) ? (
        <>
          {gpus(job.gpus_milli)}
          <span className="text-faint">{job.gpus_milli === 1000 ? " GPU" : " GPUs"}</span>
        </>
      ) : (
        job.asks
      )}
    </span>
  );
}

function Reason({ text }: { text: string }) {
  return (
    <Tooltip text={text.length > 60 ? text : undefined}>
      <span className="line-clamp-2 lg:line-clamp-1">
        <Sentence text={text} />
      </span>
    </Tooltip>
  );
}

/** `14:05`, or from the likely to the late: `15:10–15:40`. */
function Starts({ job }: { job: Job }) {
  const now = useNow(15_000);
  const { eta: p50, eta_p90: p90 } = job;
  if (!p50) return <span className="text-right text-faint">no start time yet</span>;
  const early = clock(p50, now);
  const late = p90 ? clock(p90, now) : early;
  // The day is said once.
  const [day, hour] = late.split(" ");
  const short = hour && early.startsWith(`${day} `) ? hour : late;
  return (
    <Tooltip
      text={`Half of all forecasts by ${absolute(p50)}${p90 ? `, 90 % by ${absolute(p90)}` : ""}`}
    >
      <span className="whitespace-nowrap text-right tabular-nums">
        {Date.parse(p50) <= now ? "now" : early}
        {p90 && late !== early && <span className="text-faint">–{short}</span>}
      </span>
    </Tooltip>
  );
}

function Cost({ job }: { job: Job }) {
  const models = useModels();
  if (job.projected_micros != null)
    return (
      <Tooltip text="What it is expected to cost in all">
        <span>
          <Money micros={job.projected_micros} />
        </span>
      </Tooltip>
    );
  const rate = priceOf(job.asks, job.gpus_milli, models);
  if (rate === undefined || rate === 0) return <None />;
  return <Money micros={rate} rate />;
}
