import { useQueries, useQueryClient } from "@tanstack/react-query";
import { ArrowUpDown, Pause, Play, X } from "lucide-react";
import { useState } from "react";
import { asApiError } from "@/api/error";

import { actOnJob, type JobAction } from "@/api/queries";
import { useMayFor } from "@/api/session";
import type { Job, StopPreview } from "@/api/types";
import { Button, Confirm, Field, Select, toast } from "@/design";
import { plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { lossOfAll } from "../job/loss";
import { HOLDS } from "../job/project";
import { stopPreviewQuery } from "../job/routes";
import { type BulkVerb, each, fitting } from "./bulk";

const WORDS: Record<BulkVerb, { button: string; verb: string; title: string; did: string }> = {
  stop: { button: "Stop", verb: "Stop", title: "Stop", did: "being stopped" },
  pause: { button: "Pause", verb: "Pause", title: "Pause", did: "being paused" },
  resume: { button: "Resume", verb: "Resume", title: "Resume", did: "resumed" },
  priority: {
    button: "Priority",
    verb: "Set the priority of",
    title: "Set the priority of",
    did: "changed",
  },
};
const ICONS = { stop: X, pause: Pause, resume: Play, priority: ArrowUpDown } as const;
const VERBS = ["resume", "pause", "priority", "stop"] as const;

/** What can be done with the jobs that are selected. */
export function Bulk({ jobs, onDone }: { jobs: Job[]; onDone: () => void }) {
  const mayFor = useMayFor();
  const [asks, setAsks] = useState<{ verb: BulkVerb; jobs: Job[] }>();
  return (
    <section aria-label="Selected jobs" className="flex flex-wrap items-center gap-2">
      {VERBS.map((verb) => {
        const some = fitting(jobs, verb);
        const no = some.map((j) => mayFor("JobsControl", j)).find((m) => !m.ok);
        return (
          <Button
            key={verb}
            icon={ICONS[verb]}
            look={verb === "stop" ? "danger" : "secondary"}
            disabled={some.length === 0}
            denied={no?.reason}
            onClick={() => setAsks({ verb, jobs: some })}
          >
            {WORDS[verb].button}
            {some.length !== jobs.length && some.length > 0 ? ` ${some.length}` : ""}
          </Button>
        );
      })}
      {asks && (
        <Ask verb={asks.verb} jobs={asks.jobs} onClose={() => setAsks(undefined)} onDone={onDone} />
      )}
    </section>
  );
}

/** So many are asked about one by one; of more the sum is told as what it is at most. */
const ASKED = 40;
const CLASSES = ["low", "normal", "high", "critical"] as const;

function Ask({
  verb,
  jobs,
  onClose,
  onDone,
}: {
  verb: BulkVerb;
  jobs: Job[];
  onClose: () => void;
  onDone: () => void;
}) {
  const client = useQueryClient();
  const now = useNow(1000);
  const [priority, setPriority] = useState<string>("high");
  const [done, setDone] = useState(0);
  const running = jobs.filter((j) => HOLDS.has(j.state));
  const loses = verb === "stop" || verb === "pause";
  const previews = useQueries({
    queries: (loses ? running.slice(0, ASKED) : []).map((j) => ({
      ...stopPreviewQuery(j.id),
    })),
    combine: (all) =>
      new Map(
        all.flatMap((q, i) =>
          q.data ? [[running[i]?.id ?? "", q.data] as [string, StopPreview]] : [],
        ),
      ),
  });
  const action = (): JobAction => {
    if (verb === "priority") return { kind: "set", change: { priority } };
    return { kind: verb };
  };
  const go = async () => {
    const out = await each(
      jobs.map((j) => j.id),
      (id) => actOnJob(id, action()),
      setDone,
    );
    for (const key of ["jobs", "job", "queues", "gpus"])
      void client.invalidateQueries({ queryKey: [key] });
    const [first] = out.failed;
    if (first) {
      const e = asApiError(first.error);
      const rest = out.failed.length > 1 ? ` and ${out.failed.length - 1} more` : "";
      throw new Error(
        `${plural(out.done, "job")} ${WORDS[verb].did}; not ${first.id}${rest}: ${e.message}${e.code ? ` (${e.code})` : ""}`,
      );
    }
    toast(`${plural(out.done, "job")} ${WORDS[verb].did}.`);
    onDone();
  };
  const n = plural(jobs.length, "job");
  return (
    <Confirm
      open
      onClose={onClose}
      title={`${WORDS[verb].title} ${n}?`}
      loses={loses ? lossOfAll(jobs, verb, now, previews) : []}
      verb={verb === "priority" ? "Set priority" : `${WORDS[verb].verb} ${n}`}
      harmless={verb !== "stop"}
      onConfirm={go}
    >
      <ul className="max-h-40 overflow-y-auto">
        {jobs.slice(0, 200).map((j) => (
          <li key={j.id} className="flex gap-2">
            <span className="shrink-0 tabular-nums">{j.id}</span>
            <bdi className="min-w-0 truncate">{j.name}</bdi>
          </li>
        ))}
      </ul>
      {verb === "priority" && (
        <div className="mt-3">
          <Field label="Priority" hint="A higher one may stop running jobs of lower ones.">
            {(p) => (
              <Select
                {...p}
                value={priority}
                onChange={setPriority}
                options={CLASSES.map((value) => ({ value, label: value }))}
              />
            )}
          </Field>
        </div>
      )}
      {done > 0 && (
        <p role="status" className="mt-2">
          {done} of {jobs.length}
        </p>
      )}
    </Confirm>
  );
}
