import { useMay } from "@/api/session";
import type { Me } from "@/api/types";
import { CommandLine, LinkButton, shell } from "@/design";

interface Step {
  say: string;
  command: string;
}

const RUN: readonly Step[] = [
  { say: "See which GPUs are free, and what an hour of them costs.", command: "berth gpus" },
  {
    say: "Run something on one of them, and see what it prints.",
    command: "berth run -g 1 -- nvidia-smi",
  },
  { say: "See what runs and what waits.", command: "berth ps" },
];

const look = (team: string): readonly Step[] => [
  { say: "See the jobs of the team.", command: `berth ps --team ${shell(team)}` },
  { say: "See who waits there, and why.", command: `berth queue ${shell(team)}` },
  { say: "See what the team spent.", command: `berth cost --team ${shell(team)}` },
];

/** For those who have not run anything yet: the first three commands. */
export function FirstTime({ me }: { me: Me }) {
  const may = useMay("JobsSubmit");
  const team = me.teams[0]?.team;
  const steps = may.ok || !team ? RUN : look(team);
  return (
    <section
      aria-label="First steps"
      className="rounded-md border border-line bg-surface px-4 py-4"
    >
      <h2 className="font-semibold text-16">
        {may.ok ? "Run your first job" : "Nothing of yours yet"}
      </h2>
      <p className="mt-1 max-w-160 text-muted">
        {may.ok
          ? "Your jobs stand here, with what they cost and what needs you. From a terminal it begins like this:"
          : team
            ? `You may look at ${team} and run nothing: that takes a researcher. From a terminal:`
            : "You are in no team yet: a team lead or an admin can add you. Then it begins like this:"}
      </p>
      <ol className="mt-4 grid gap-4 lg:grid-cols-3">
        {steps.map((step, i) => (
          <li key={step.command} className="flex min-w-0 flex-col gap-2">
            <p className="flex gap-2">
              <span className="font-medium text-muted">{i + 1}</span>
              {step.say}
            </p>
            <div className="mt-auto rounded-md border border-line">
              <CommandLine command={step.command} />
            </div>
          </li>
        ))}
      </ol>
      <p className="mt-4 flex gap-2">
        {may.ok && <LinkButton to="/new">Fill in a form instead</LinkButton>}
        {!may.ok && team && (
          <LinkButton to="/jobs" search={{ team } as never}>{`Jobs of ${team}`}</LinkButton>
        )}
      </p>
    </section>
  );
}
