import type { Job } from "@/api/types";
import { ErrorNote, Figure, Money, Panel, Skeleton } from "@/design";
import { clock, gpus, span } from "@/lib/format";
import { useNow } from "@/lib/now";
import { useStopPreview } from "../data";
import { hasKey, keyOf } from "../file";

/** How much would be lost if it stopped now, and what it says about saving. */
export function Checkpoint({ job, file }: { job: Job; file: string | undefined }) {
  const now = useNow(5000);
  const preview = useStopPreview(job);
  const found = preview.data;
  const saves = hasKey(file, "checkpoint");
  const every = /every: *([^,}\n]+)/.exec(keyOf(file, "checkpoint") ?? "")?.[1];
  return (
    <Panel title="Checkpoint and work at risk">
      {preview.error && !found ? (
        <ErrorNote error={preview.error} onRetry={() => void preview.refetch()} />
      ) : !found ? (
        <div data-skeleton aria-busy="true" className="flex flex-col gap-2">
          <Skeleton width="40%" height={24} />
          <Skeleton width="70%" />
        </div>
      ) : (
        <div className="flex flex-col gap-1">
          <p className="flex flex-wrap items-baseline gap-x-2 text-16">
            <span className="font-semibold">
              <Figure value={span(found.lost_ms)} />
            </span>
            {job.price_micros_per_hour ? (
              <span className="text-muted">
                or <Money micros={found.lost_micros} /> on {gpus(job.gpus_milli)}{" "}
                {job.gpus_milli === 1000 ? "GPU" : "GPUs"}
              </span>
            ) : null}
          </p>
          <p className="text-muted">
            {found.last_checkpoint
              ? `since the last checkpoint, ${clock(found.last_checkpoint, now)}: this is lost if it stops now${found.may_save ? ", unless it saves within its grace" : ""}.`
              : `since it started: it has no checkpoint yet, so a stop loses all of it${found.may_save ? ", unless it saves within its grace" : ""}.`}
          </p>
          <p className="text-muted">
            {saves
              ? `Its file asks for checkpoints${every ? ` every ${every}` : ""}.`
              : "Its file names no checkpoint: when it is stopped, it begins anew."}
          </p>
        </div>
      )}
    </Panel>
  );
}
