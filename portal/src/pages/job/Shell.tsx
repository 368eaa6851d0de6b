import { Suspense } from "react";
import { link, protocols } from "@/api/client";
import { useMay } from "@/api/session";
import type { Job } from "@/api/types";
import { EmptyState, ErrorState } from "@/design";
import { berth } from "@/design/CommandBar";
import { Terminal } from "@/viz/terminal";
import { FINAL } from "./project";
import { TabSkeleton } from "./Skeletons";

/** A shell in the job, with its environment and GPUs. */
export default function Shell({ job }: { job: Job }) {
  const may = useMay("JobsShell", job);
  if (!may.ok)
    return <EmptyState title="You may not open a terminal in this job">{may.reason}</EmptyState>;
  if (job.state !== "running")
    return (
      <EmptyState
        title={FINAL.has(job.state) ? "It has ended" : "It does not run yet"}
        command={berth(`shell ${job.id}`)}
      >
        A terminal opens in a job that runs, with its environment and its GPUs.
      </EmptyState>
    );
  if (typeof WebSocket === "undefined")
    return <ErrorState error={new Error("This browser has no WebSockets.")} />;
  return (
    <div className="p-4">
      <Suspense fallback={<TabSkeleton />}>
        <Terminal
          title={`Terminal in ${job.name}`}
          height={Math.max(280, window.innerHeight - 228)}
          connect={() => {
            const at = new URL(
              link("/v1/jobs/{job}/shell", { path: { job: job.id } }),
              location.href,
            );
            at.protocol = at.protocol === "https:" ? "wss:" : "ws:";
            return new WebSocket(at, protocols()) as never;
          }}
        />
      </Suspense>
    </div>
  );
}
