import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { actOnJob, touchJob, whyQuery } from "@/api/queries";
import { useMe } from "@/api/session";
import type { Job } from "@/api/types";
import { Button, CommandLine, Dialog, ErrorNote, Field, Note, Select, toast } from "@/design";
import { clock, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { CLASSES, classesFor, className } from "../new-job/model/rights";
import { effectOf } from "./line";

/** Changes a priority, and says first what that does to whom. */
export function PriorityDialog({
  job,
  to,
  line,
  onClose,
}: {
  job: Job;
  /** The class that a drop asks for. */
  to?: string | undefined;
  line: readonly Job[];
  onClose: () => void;
}) {
  const me = useMe();
  const client = useQueryClient();
  const allowed = classesFor(me);
  const is = className(job.priority);
  const [name, setName] = useState(to && allowed.includes(to) ? to : is);
  const change = useMutation({
    mutationFn: () => actOnJob(job.id, { kind: "set", change: { priority: name } }),
    onSuccess: (answer) => {
      touchJob(client, job.id, answer);
      toast(`${job.name} has priority ${name} now`);
      onClose();
    },
  });
  const options = CLASSES.filter((c) => allowed.includes(c.name)).map((c) => ({
    value: c.name as string,
    label: `${c.name} (${c.value})`,
  }));
  if (!options.some((o) => o.value === is)) options.unshift({ value: is, label: is });
  return (
    <Dialog
      open
      onClose={onClose}
      title={`Priority of ${job.id} ${job.name}`}
      description={`It is ${is} now, ${job.position ? `number ${job.position} in ${job.team}` : `waiting in ${job.team}`}.`}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            busy={change.isPending}
            disabled={name === is}
            onClick={() => change.mutate()}
          >
            {name === is ? "Set priority" : `Set to ${name}`}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <Field label="Priority">
          {(p) => (
            <Select {...p} className="w-full" value={name} onChange={setName} options={options} />
          )}
        </Field>
        {name !== is && <Change job={job} name={name} line={line} />}
        {change.error && <ErrorNote error={change.error} />}
        <div className="rounded-md border border-line">
          <CommandLine command={`berth set ${job.id} priority=${name}`} />
        </div>
      </div>
    </Dialog>
  );
}

function Change({ job, name, line }: { job: Job; name: string; line: readonly Job[] }) {
  const now = useNow(15_000);
  const why = useQuery({ ...whyQuery(job.id), retry: false });
  const value = CLASSES.find((c) => c.name === name)?.value ?? Number(name);
  const { passes, lets } = effectOf(job, value, line);
  const told = why.data?.sooner.find((s) =>
    new RegExp(`\\bpriority[: =]+${name}\\b`).test(`${s.change} ${s.command ?? ""}`),
  );
  return (
    <section aria-label="What it changes" className="flex flex-col gap-3">
      {told && (
        <p className="font-medium text-14">
          {told.starts ? `Starts about ${clock(told.starts, now)}` : "Starts at once"}
          {job.eta && (
            <span className="font-normal text-muted"> instead of {clock(job.eta, now)}</span>
          )}
          {told.stops > 0 && `; ${plural(told.stops, "running job")} would be stopped for it`}
        </p>
      )}
      <Who title="Goes before" jobs={passes} />
      <Who title="Lets go first" jobs={lets} />
      {passes.length === 0 && lets.length === 0 && (
        <p className="text-muted">It keeps its place in {job.team}.</p>
      )}
      {name === "critical" && (
        <Note tone="warn">A critical job takes GPUs from lower classes of every team.</Note>
      )}
      <p className="text-12 text-muted">
        The order also counts how long jobs have waited and what their queues are due.
      </p>
    </section>
  );
}

function Who({ title, jobs }: { title: string; jobs: readonly Job[] }) {
  if (jobs.length === 0) return null;
  return (
    <div>
      <h3 className="mb-1 text-12 text-muted">
        {title} {plural(jobs.length, "job")}
      </h3>
      <ul className="divide-y divide-line rounded-md border border-line">
        {jobs.slice(0, 6).map((j) => (
          <li key={j.id} className="flex items-center gap-2 px-3 py-1">
            <span className="text-12 text-faint">{j.id}</span>
            <bdi className="min-w-0 flex-1 truncate">{j.name}</bdi>
            <bdi className="max-w-32 truncate text-12 text-muted">{j.user}</bdi>
            <span className="text-12 text-muted">{className(j.priority)}</span>
          </li>
        ))}
        {jobs.length > 6 && (
          <li className="px-3 py-1 text-12 text-muted">and {jobs.length - 6} more</li>
        )}
      </ul>
    </div>
  );
}
