import { useQuery } from "@tanstack/react-query";
import { Waypoints } from "lucide-react";
import type { ReactNode } from "react";
import {
  loggedModelQuery,
  type ModelVersion,
  metricNumber,
  type RegisteredModel,
  record,
  runQuery,
  type TrackedRun,
} from "@/api/tracking";
import {
  Button,
  berth,
  CommandLine,
  Drawer,
  ErrorNote,
  Facts,
  LinkButton,
  Money,
  Mono,
  Note,
  Skeleton,
  shell,
  TextLink,
  Time,
} from "@/design";
import { count } from "@/lib/format";
import { isPrompt, promptText } from "../models/model";
import { type Compared, compared, sideOf, valueText } from "./compare";
import type { Asked } from "./dialogs";
import { AliasList, Description, TagList } from "./parts";
import { isClosed, type ModelRights } from "./rights";

/** One version: its aliases and stage, its source run with the cost, and its metrics. */
export function VersionDrawer({
  team,
  model,
  version,
  wanted,
  rights,
  onAsk,
  onClose,
  onStep,
}: {
  team: string;
  model: RegisteredModel;
  version: ModelVersion | undefined;
  /** The version of the address. */
  wanted: string | undefined;
  rights: ModelRights;
  onAsk: (asked: Asked) => void;
  onClose: () => void;
  onStep: (by: 1 | -1) => void;
}) {
  const prompt = isPrompt(model);
  const { owner, change } = rights;
  return (
    <Drawer
      open={wanted !== undefined}
      onClose={onClose}
      onStep={onStep}
      title={`Version ${wanted ?? ""}`}
      subtitle={<bdi>{model.name}</bdi>}
      command={
        prompt || !rights.inside
          ? berth(`models versions ${shell(model.name)}`, { "--team": team })
          : berth(`lineage ${shell(`model:${owner.name}@${wanted ?? ""}`)}`, {
              "--team": owner.team,
            })
      }
      actions={
        version &&
        (change || (rights.inside && !prompt)) && (
          <>
            {!prompt && rights.inside && (
              <LinkButton
                to="/lineage"
                search={{ of: `model:${owner.name}@${version.version}`, team: owner.team }}
                icon={Waypoints}
                look="primary"
              >
                Lineage
              </LinkButton>
            )}
            {!prompt && change && (
              <Button
                denied={change.write.reason}
                onClick={() => onAsk({ kind: "stage", version })}
              >
                Change stage
              </Button>
            )}
            {change && (
              <Button
                look="danger"
                denied={change.deleteVersion(version).reason}
                onClick={() => onAsk({ kind: "delete", version })}
              >
                Delete version
              </Button>
            )}
          </>
        )
      }
    >
      {version ? (
        <Inside
          key={version.version}
          version={version}
          prompt={prompt}
          rights={rights}
          onAsk={onAsk}
        />
      ) : (
        <Note>Version {wanted} does not exist. A user may have deleted it.</Note>
      )}
    </Drawer>
  );
}

function Inside({
  version,
  prompt,
  rights,
  onAsk,
}: {
  version: ModelVersion;
  prompt: boolean;
  rights: ModelRights;
  onAsk: (asked: Asked) => void;
}) {
  const write = rights.change?.write;
  const text = prompt ? promptText(version) : undefined;
  const aliases = version.aliases.map((alias) => ({ alias, version: version.version }));
  return (
    <div className="flex flex-col gap-4">
      <Description
        text={version.description}
        write={write}
        onEdit={() => onAsk({ kind: "describe", version })}
      />
      <Part title="Aliases">
        <AliasList aliases={aliases} version={version} write={write} onAsk={onAsk} />
      </Part>
      <Part title="Tags">
        <TagList tags={version.tags} version={version} write={write} onAsk={onAsk} />
      </Part>
      {text !== undefined && (
        <Part title="Text">
          <pre
            tabIndex={0}
            className="max-h-96 overflow-auto whitespace-pre-wrap rounded-md border border-line bg-bg p-3 font-mono text-12 wrap-anywhere"
          >
            {text}
          </pre>
        </Part>
      )}
      <Facts
        items={[
          !prompt && ["Stage", version.current_stage],
          ["Made by", <bdi key="b">{version.user_id}</bdi>],
          ["Made", <Time key="m" at={version.creation_timestamp} as="both" />],
          version.last_updated_timestamp > version.creation_timestamp && [
            "Changed",
            <Time key="c" at={version.last_updated_timestamp} as="both" />,
          ],
          !prompt && ["Files at", <Mono key="s">{version.source}</Mono>],
          Boolean(version.model_id) && [
            "Logged model",
            <Mono key="l">{version.model_id ?? ""}</Mono>,
          ],
        ]}
      />
      {!prompt && !rights.inside && (
        <Note>
          Only members of team <bdi>{rights.owner.team}</bdi> can read the files and the lineage of
          this version.
        </Note>
      )}
      {version.run_id && <Source version={version} run={version.run_id} rights={rights} />}
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex flex-col gap-1">
      <h3 className="font-medium">{title}</h3>
      {children}
    </section>
  );
}

/** The cost of a run. Berth logs it as a metric. */
export function costOf(run: TrackedRun | undefined): number | undefined {
  const point = run?.data.metrics.find((m) => m.key === "berth.cost");
  const value = point && metricNumber(point.value);
  return value === undefined || Number.isNaN(value) ? undefined : Math.round(value * 1e6);
}

function Source({
  version,
  run: id,
  rights,
}: {
  version: ModelVersion;
  run: string;
  rights: ModelRights;
}) {
  const run = useQuery({ ...runQuery(id), retry: false });
  const logged = useQuery({
    ...loggedModelQuery(version.model_id ?? ""),
    enabled: Boolean(version.model_id),
    retry: false,
  });
  if (run.error)
    return (
      <Part title="Source run">
        {isClosed(run.error, rights) ? (
          <ClosedRun id={id} team={rights.owner.team} />
        ) : (
          <ErrorNote error={run.error} />
        )}
      </Part>
    );
  if (!run.data)
    return (
      <Part title="Source run">
        <Skeleton width="70%" />
      </Part>
    );
  const { inside } = rights;
  const { info, data } = run.data;
  const tags = record(data.tags);
  const job = tags["berth.job"];
  const hours = data.metrics.find((m) => m.key === "berth.gpu_hours");
  const rows = compared(
    sideOf({ ...version, tags: [] }),
    sideOf({ ...version, tags: [] }, run.data, logged.data),
  );
  return (
    <>
      <Part title="Source run">
        <Facts
          items={[
            [
              "Run",
              <TextLink key="r" to="/runs/$run" params={{ run: info.run_id }}>
                <bdi>{info.run_name || info.run_id}</bdi>
              </TextLink>,
            ],
            ["State", info.status.toLowerCase()],
            Boolean(job) && [
              "Job",
              inside ? (
                <TextLink key="j" to="/jobs/$job" params={{ job: job ?? "" }}>
                  {job}
                </TextLink>
              ) : (
                job
              ),
            ],
            ["Cost", <Money key="c" micros={costOf(run.data)} />],
            hours && ["GPU-hours", count(metricNumber(hours.value), 1)],
            Boolean(tags["mlflow.source.git.commit"]) && [
              "Commit",
              <Mono key="g">{tags["mlflow.source.git.commit"] ?? ""}</Mono>,
            ],
          ]}
        />
        {job && inside && (
          <div className="rounded-md border border-line">
            <CommandLine command={berth(`reproduce run:${info.run_id}`)} />
          </div>
        )}
      </Part>
      <Values title="Metrics" rows={rows.filter((r) => r.what === "metric")} />
      <Values title="Params" rows={rows.filter((r) => r.what === "param")} />
    </>
  );
}

/** The source run of a shared model. The other team can read it only if its experiment is shared, too. */
export function ClosedRun({ id, team }: { id: string; team: string }) {
  return (
    <p className="text-muted">
      <Mono>{id}</Mono> is a run of team <bdi>{team}</bdi>, which does not share its experiment. Its
      metrics, params and cost are not shown here.
    </p>
  );
}

const MOST = 200;

function Values({ title, rows }: { title: string; rows: readonly Compared[] }) {
  if (rows.length === 0) return null;
  return (
    <Part title={title}>
      <Facts
        items={rows
          .slice(0, MOST)
          .map((r) => [r.key, <bdi key={r.key}>{valueText(r.key, r.after) ?? ""}</bdi>])}
      />
      {rows.length > MOST && (
        <p className="text-12 text-muted">The run has {count(rows.length - MOST)} more.</p>
      )}
    </Part>
  );
}
