import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Copy, Pause, Play, SquareTerminal, X } from "lucide-react";
import { useState } from "react";
import { type JobAction, touchJob, useJobAction } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Job } from "@/api/types";
import { Button, Confirm, ErrorNote, toast } from "@/design";
import { useNow } from "@/lib/now";
import { useStopPreview } from "./data";
import { lossOf } from "./loss";
import { FINAL } from "./project";

/** What one may do with a job. What makes no sense in its state is not there; what one may not is, and says who may. */
export function JobActions({ job, terminal = true }: { job: Job; terminal?: boolean }) {
  const [asks, setAsks] = useState<"stop" | "pause">();
  const navigate = useNavigate();
  const may = useMay("JobsControl", job);
  const submit = useMay("JobsSubmit", { team: job.team });
  const shell = useMay("JobsShell", job);
  const act = useJobAction(job.id);
  const denied = may.ok ? undefined : may.reason;
  const over = FINAL.has(job.state);
  const held = job.state === "pending" && job.reason_code === "held";
  const pausable = !over && job.state !== "paused" && job.state !== "stopping" && !held;

  const resume = () =>
    act.mutate({ kind: "resume" }, { onSuccess: () => toast(`${job.name} goes on.`) });

  return (
    <>
      {act.error && !asks && <ErrorNote error={act.error} />}
      {terminal && job.state === "running" && (
        <Button
          icon={SquareTerminal}
          denied={shell.ok ? undefined : shell.reason}
          onClick={() =>
            void navigate({
              to: "/jobs/$job",
              params: { job: job.id },
              search: { tab: "terminal" },
            })
          }
        >
          Terminal
        </Button>
      )}
      <Button
        icon={Copy}
        denied={submit.ok ? undefined : submit.reason}
        aria-label="Clone job"
        onClick={() => void navigate({ to: "/new", search: { from: job.id } })}
      >
        Clone
      </Button>
      {(job.state === "paused" || held) && (
        <Button
          icon={Play}
          denied={denied}
          busy={act.isPending}
          aria-label="Resume job"
          onClick={resume}
        >
          Resume
        </Button>
      )}
      {pausable && (
        <Button
          icon={Pause}
          denied={denied}
          aria-label="Pause job"
          onClick={() => setAsks("pause")}
        >
          Pause
        </Button>
      )}
      {!over && (
        <Button
          look="danger"
          icon={X}
          denied={denied}
          disabled={job.state === "stopping"}
          aria-label="Stop job"
          onClick={() => setAsks("stop")}
        >
          {job.state === "stopping" ? "Stopping" : "Stop"}
        </Button>
      )}
      {asks && <Ask job={job} verb={asks} onClose={() => setAsks(undefined)} />}
    </>
  );
}

function Ask({ job, verb, onClose }: { job: Job; verb: "stop" | "pause"; onClose: () => void }) {
  const client = useQueryClient();
  const now = useNow(1000);
  const preview = useStopPreview(job).data;
  const act = useJobAction(job.id);
  const go = async (action: JobAction) => {
    const answer = await act.mutateAsync(action);
    touchJob(client, job.id, answer);
    toast(verb === "stop" ? `${job.name} is being stopped.` : `${job.name} is being paused.`);
  };
  const stop = verb === "stop";
  return (
    <Confirm
      open
      onClose={onClose}
      title={`${stop ? "Stop" : "Pause"} ${job.id} ${job.name}?`}
      loses={lossOf(job, verb, now, preview)}
      verb={stop ? "Stop job" : "Pause job"}
      harmless={!stop}
      onConfirm={() => go(stop ? { kind: "stop" } : { kind: "pause" })}
    />
  );
}
