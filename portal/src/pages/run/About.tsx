import type { Experiment } from "@/api/tracking";
import { CopyButton, Facts, Mono, None, Panel, TextLink, Time } from "@/design";
import { plainName } from "../experiments/teams";
import type { RunParts } from "./model";

/** The experiment, the job, the hardware and the code of the run. */
export function About({
  parts: { run, row, team },
  experiment,
}: {
  parts: RunParts;
  experiment: Experiment | undefined;
}) {
  const tag = (key: string) => row.tags[key];
  const commit = tag("mlflow.source.git.commit");
  return (
    <Panel title="About">
      <Facts
        items={[
          [
            "Experiment",
            <TextLink
              key="experiment"
              to="/experiments/$experiment"
              params={{ experiment: run.info.experiment_id }}
            >
              <bdi>{experiment ? plainName(experiment) : run.info.experiment_id}</bdi>
            </TextLink>,
          ],
          ["Team", team ?? <None key="team" />],
          tag("berth.job") !== undefined && [
            "Job",
            <TextLink key="job" to="/jobs/$job" params={{ job: tag("berth.job") ?? "" }}>
              {tag("berth.job")}
            </TextLink>,
          ],
          tag("mlflow.parentRunId") !== undefined && [
            "Parent run",
            <TextLink
              key="parent"
              to="/runs/$run"
              params={{ run: tag("mlflow.parentRunId") ?? "" }}
              className="block truncate"
            >
              {tag("mlflow.parentRunId")}
            </TextLink>,
          ],
          tag("berth.project") !== undefined && [
            "Project",
            <bdi key="p">{tag("berth.project")}</bdi>,
          ],
          tag("berth.end") !== undefined && ["End", <bdi key="e">{tag("berth.end")}</bdi>],
          tag("berth.attempts") !== undefined && ["Attempts", tag("berth.attempts")],
          tag("berth.gpus") !== undefined && ["GPUs", tag("berth.gpus")],
          tag("berth.nodes") !== undefined && ["Nodes", <bdi key="n">{tag("berth.nodes")}</bdi>],
          tag("berth.image") !== undefined && [
            "Image",
            <Mono key="i" cut>
              {tag("berth.image") ?? ""}
            </Mono>,
          ],
          commit !== undefined && [
            "Commit",
            <span key="c" className="flex min-w-0 items-center gap-1">
              <Mono>{commit.slice(0, 12)}</Mono>
              {tag("berth.code.dirty") === "true" && (
                <span className="text-warn">with uncommitted changes</span>
              )}
            </span>,
          ],
          tag("mlflow.source.name") !== undefined && [
            "Source",
            <Mono key="s" cut>
              {tag("mlflow.source.name") ?? ""}
            </Mono>,
          ],
          ["Started", <Time key="start" at={row.start} as="both" />],
          row.end !== undefined && ["Ended", <Time key="end" at={row.end} as="both" />],
          [
            "Run id",
            <span key="id" className="flex min-w-0 items-center gap-1">
              <Mono cut>{row.id}</Mono>
              <CopyButton text={row.id} label="Copy the run id" />
            </span>,
          ],
        ]}
      />
    </Panel>
  );
}
