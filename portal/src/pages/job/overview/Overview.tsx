import { lazy, Suspense } from "react";
import type { Job } from "@/api/types";
import { Note, Skeleton, TextLink } from "@/design";
import { useOutlook } from "../data";
import { Headline } from "../Headline";
import { HOLDS } from "../project";
import { sentence } from "../why";
import { About } from "./About";
import { Checkpoint } from "./Checkpoint";
import { Elements } from "./Elements";
import { PlacementPanel } from "./Placement";
import { TimelinePanel } from "./TimelinePanel";
import { WhyPanel } from "./WhyPanel";

const GpuPanel = lazy(() => import("./GpuPanel"));

export function Overview({ job, array }: { job: Job; array: boolean }) {
  const { file } = useOutlook(job);
  const waits = job.state === "pending" || job.state === "paused";
  return (
    <div className="flex flex-col gap-4 p-4">
      <Headline job={job} />
      {job.state === "failed" && job.reason && (
        <Note tone="warn">
          {sentence(job.exit?.text || job.reason, Date.now())}{" "}
          <TextLink to="/jobs/$job" params={{ job: job.id }} search={{ tab: "logs" }}>
            Its log
          </TextLink>
        </Note>
      )}
      <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-[minmax(0,1fr)_360px]">
        <div className="flex min-w-0 flex-col gap-4">
          {waits && <WhyPanel job={job} />}
          {array ? <Elements job={job} /> : <TimelinePanel job={job} />}
          {!array && job.gpus_milli > 0 && job.started && (
            <Suspense
              fallback={
                <div data-skeleton aria-busy="true">
                  <Skeleton height={198} />
                </div>
              }
            >
              <GpuPanel job={job} />
            </Suspense>
          )}
          {HOLDS.has(job.state) && !array && <Checkpoint job={job} file={file} />}
          {!array && job.attempts > 0 && <PlacementPanel job={job} />}
        </div>
        <About job={job} />
      </div>
    </div>
  );
}
