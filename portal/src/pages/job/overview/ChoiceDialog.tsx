import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { actOnJob, touchJob } from "@/api/queries";
import type { Job, Plan } from "@/api/types";
import {
  Button,
  berth,
  CommandLine,
  Dialog,
  ErrorNote,
  Facts,
  Money,
  shell,
  toast,
} from "@/design";
import { clock, money, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { cloneJob } from "../data";
import { keyOf } from "../file";
import { type Deed, linesOf } from "../why";
import { type Priced, priceChange } from "./choices";
import { changeWords } from "./WhyPanel";

/** The exact change and its price, before anything is done. */
export function ChoiceDialog({
  job,
  choice,
  base,
  file,
  p50,
  onClose,
}: {
  job: Job;
  choice: Priced;
  base: Plan | undefined;
  file: string | undefined;
  p50: number | undefined;
  onClose: () => void;
}) {
  const now = useNow(15_000);
  const client = useQueryClient();
  const navigate = useNavigate();
  const { deed, plan } = choice;
  const apply = useMutation({
    mutationFn: () => carryOut(job, deed),
    onSuccess: (next) => {
      touchJob(client, job.id);
      onClose();
      if (next) {
        toast(`Submitted anew as ${next}.`);
        void navigate({ to: "/jobs/$job", params: { job: next } });
      } else toast(`${job.name}: ${choice.label.toLowerCase()}.`);
    },
  });
  const lines = linesOf(deed, (key) => keyOf(file, key));
  const change = priceChange(base?.total_micros, choice.price);
  return (
    <Dialog
      open
      onClose={onClose}
      title={choice.label}
      description={
        <>
          <bdi>{job.name}</bdi> ({job.id})
        </>
      }
      footer={
        <>
          <Button onClick={onClose}>Leave it</Button>
          <Button look="primary" busy={apply.isPending} onClick={() => apply.mutate()}>
            Apply
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <table className="w-full border-collapse">
          <caption className="sr-only">What changes</caption>
          <thead>
            <tr className="border-line border-b text-left text-12 text-muted">
              <th className="py-1 pr-3 font-normal">Key</th>
              <th className="py-1 pr-3 font-normal">Now</th>
              <th className="py-1 font-normal">Then</th>
            </tr>
          </thead>
          <tbody>
            {lines.map((l) => (
              <tr key={l.key} className="border-line border-b">
                <td className="py-1 pr-3 font-mono text-12">{l.key}</td>
                <td className="py-1 pr-3 text-muted line-through wrap-anywhere">{l.from}</td>
                <td className="py-1 font-medium wrap-anywhere">{l.to}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <Facts
          items={[
            [
              "Starts",
              <>
                {choice.starts === undefined || choice.starts <= now
                  ? "now"
                  : `about ${clock(choice.starts, now)}`}
                {p50 !== undefined && (
                  <span className="text-muted"> instead of about {clock(p50, now)}</span>
                )}
              </>,
            ],
            [
              "Price",
              choice.price !== undefined ? (
                <>
                  <Money micros={choice.price} />
                  <span className="text-muted">
                    {base?.total_micros != null &&
                      ` instead of ${money(base.total_micros)}, ${changeWords(change)}`}
                    {plan?.most_micros != null &&
                      `; at most ${money(plan.most_micros)} at its time limit`}
                  </span>
                </>
              ) : (
                <span className="text-muted">{choice.pricing ? "asking…" : "it has no price"}</span>
              ),
            ],
            choice.stops > 0 && [
              "Stops",
              `${plural(choice.stops, "running job")}: ${choice.stops === 1 ? "it waits" : "they wait"} again and go${choice.stops === 1 ? "es" : ""} on from ${choice.stops === 1 ? "its" : "their"} last checkpoint.`,
            ],
          ]}
        />
        {deed.kind === "replace" && (
          <p className="text-muted">
            A job that waits keeps what it asked for. So its file is submitted anew with this
            change, and {job.id} is stopped. The new job begins at the end of the line.
          </p>
        )}
        <div className="rounded-md border border-line">
          <CommandLine command={choice.command ?? commandOf(job.id, deed)} />
        </div>
        {apply.error && <ErrorNote error={apply.error} />}
      </div>
    </Dialog>
  );
}

/** The id of the new job, where there is one. */
async function carryOut(job: Job, deed: Deed): Promise<string | undefined> {
  switch (deed.kind) {
    case "set":
      await actOnJob(job.id, { kind: "set", change: deed.change });
      return undefined;
    case "resume":
      await actOnJob(job.id, { kind: "resume" });
      return undefined;
    case "replace": {
      const made = await cloneJob(job.id, deed.keys, deed.clone);
      // The old one goes only when the new one is there.
      await actOnJob(job.id, { kind: "stop" });
      return made.id ?? undefined;
    }
    case "advice":
      return undefined;
  }
}

function commandOf(id: string, deed: Deed): string {
  if (deed.kind !== "replace") return berth(`why ${shell(id)}`);
  const flags: Record<string, string> = {};
  for (const [key, value] of Object.entries(deed.keys)) if (value) flags[`--${key}`] = value;
  return `${berth(`clone ${shell(id)}`, flags)} && ${berth(`stop ${shell(id)}`)}`;
}
