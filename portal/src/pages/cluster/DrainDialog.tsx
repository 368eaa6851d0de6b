import { useQuery } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import { useChange } from "@/api/queries";
import type { AtRisk } from "@/api/types";
import { Confirm, ErrorNote, Money, Skeleton } from "@/design";
import { plural, relative, span } from "@/lib/format";
import { drainPreviewQuery } from "./routes";

/** Says what a drain stops before it does. */
export function DrainDialog({ node, onClose }: { node: string; onClose: () => void }) {
  const preview = useQuery(drainPreviewQuery(node));
  const drain = useChange(
    () => data(api.POST("/v1/nodes/{node}/drain", { params: { path: { node } } })),
    "nodes",
    "gpus",
    "jobs",
  );
  const found = preview.data;
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Drain ${node}?`}
      loses={(found?.stops ?? []).map((job) => ({
        what: effect(job),
        amount: job.runs_on ? undefined : <Money micros={job.lost_micros} />,
      }))}
      verb={`Drain ${node}`}
      harmless={found?.stops.every((job) => job.runs_on) ?? false}
      onConfirm={() => drain.mutateAsync(undefined)}
    >
      {preview.isPending && <Skeleton width="70%" />}
      {preview.error && <ErrorNote error={preview.error} />}
      {found && (
        <>
          {found.stops.length === 0 && <p>No job runs there.</p>}
          {found.promised.length > 0 && (
            <p>{plural(found.promised.length, "waiting job")} with a place there will wait anew.</p>
          )}
          <p>
            The node takes no work until it is uncordoned
            {found.empty_at ? `. It is empty about ${relative(found.empty_at)}.` : "."}
          </p>
        </>
      )}
    </Confirm>
  );
}

function effect(job: AtRisk): string {
  const name = job.name ?? `job ${job.job}`;
  if (job.runs_on) return `${name} runs to its end`;
  const lost = job.lost_ms > 0 ? `loses up to ${span(job.lost_ms)}` : "loses nothing";
  const saves = job.may_save ? ", less if it saves in time" : "";
  const again = job.restarts
    ? job.restarts_at
      ? `; goes on about ${relative(job.restarts_at)}`
      : "; goes on elsewhere when there is room"
    : "; does not go on";
  return `${name} stops, ${lost}${saves}${again}`;
}
