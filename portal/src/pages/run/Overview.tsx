import type { Experiment } from "@/api/tracking";
import { berth, CommandLine, None, Panel, Span, Stat, Stats, Time } from "@/design";
import { money } from "@/lib/format";
import { figure, metricText } from "../experiments/model/row";
import { About } from "./About";
import type { RunParts } from "./model";
import { Datasets, Models } from "./Related";
import { Tags } from "./Tags";
import { Metrics, Params } from "./Values";

export function Overview({
  parts,
  experiment,
}: {
  parts: RunParts;
  experiment: Experiment | undefined;
}) {
  const { row } = parts;
  const cost = row.metrics["berth.cost"];
  const hours = row.metrics["berth.gpu_hours"];
  const energy = row.metrics["berth.energy_kwh"];
  const use = row.metrics["berth.gpu_use"];
  return (
    <div className="flex flex-col gap-4 p-4">
      <Stats>
        <Stat label="Duration" note={<Time at={row.start} as="both" />}>
          {row.start === undefined ? (
            <None />
          ) : row.end !== undefined ? (
            <Span ms={row.end - row.start} />
          ) : (
            <Span from={new Date(row.start).toISOString()} />
          )}
        </Stat>
        <Stat label="Cost" note={cost === undefined ? "only for runs of jobs" : "of its job"}>
          {cost === undefined ? <None /> : money(cost * 1e6)}
        </Stat>
        <Stat
          label="GPU-hours"
          note={use === undefined ? undefined : `${metricText("berth.gpu_use", use)} used`}
        >
          {hours === undefined ? <None /> : figure(hours)}
        </Stat>
        {energy !== undefined && (
          <Stat label="Energy" note="drawn by its GPUs">
            {metricText("berth.energy_kwh", energy)}
          </Stat>
        )}
      </Stats>
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <Metrics parts={parts} />
        <Params parts={parts} />
        <About parts={parts} experiment={experiment} />
        <Tags parts={parts} />
        <Models parts={parts} />
        <Datasets parts={parts} />
      </div>
      <Panel title="On the command line" flush>
        <div className="divide-y divide-line">
          <CommandLine command={berth(`lineage run:${row.id}`, { "--team": parts.team })} />
          <CommandLine command={berth(`reproduce run:${row.id}`, { "--team": parts.team })} />
          <CommandLine command={`mlflow runs describe --run-id ${row.id}`} />
        </div>
      </Panel>
    </div>
  );
}
