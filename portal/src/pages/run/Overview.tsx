import { useQueries, useQuery } from "@tanstack/react-query";
import { Pencil, Plus, X } from "lucide-react";
import { type ReactNode, useMemo, useState } from "react";
import { asApiError } from "@/api/error";
import { useMay } from "@/api/session";
import {
  type Experiment,
  loggedModelQuery,
  type MetricPoint,
  metricNumber,
  modelVersionsQuery,
} from "@/api/tracking";
import {
  Button,
  berth,
  type Column,
  CommandLine,
  CopyButton,
  Cut,
  EmptyState,
  Facts,
  Mono,
  None,
  Panel,
  Span,
  Stat,
  Stats,
  sorted,
  Table,
  TextLink,
  Time,
  toast,
} from "@/design";
import { count, money } from "@/lib/format";
import { figure, metricText } from "../experiments/model/row";
import { plainName } from "../experiments/teams";
import { TagDialog, useRunChange } from "./Actions";
import { datasetOf, isOwnTag, type RunParts, tagsInOrder } from "./model";

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
        <Stat
          label="Cost"
          note={cost === undefined ? "Berth knows it for its own jobs" : "of its job"}
        >
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
      <Panel title="In a terminal" flush>
        <div className="divide-y divide-line">
          <CommandLine command={berth(`lineage run:${row.id}`, { "--team": parts.team })} />
          <CommandLine command={berth(`reproduce run:${row.id}`, { "--team": parts.team })} />
          <CommandLine command={`mlflow runs describe --run-id ${row.id}`} />
        </div>
      </Panel>
    </div>
  );
}

/** A long list scrolls in its panel; a short one is as high as its rows. */
function Rows<T>({
  id,
  label,
  columns,
  rows,
  rowId,
  empty,
  csv,
}: {
  id: string;
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  rowId: (row: T) => string;
  empty: ReactNode;
  csv: string;
}) {
  const long = rows.length > 14;
  const [sort, setSort] = useState<string>();
  const shown = useMemo(() => sorted(rows, columns, sort), [rows, columns, sort]);
  return (
    <div className={long ? "flex h-110 flex-col" : undefined}>
      <Table
        id={id}
        label={label}
        columns={columns}
        rows={shown}
        rowId={rowId}
        sort={sort}
        onSort={setSort}
        fit={!long}
        compact
        csv={csv}
        empty={empty}
      />
    </div>
  );
}

const KEY = (pair: { key: string }) => pair.key;

function metricColumns(run: string): Column<MetricPoint>[] {
  return [
    {
      id: "key",
      header: "Metric",
      width: 140,
      grow: 2,
      fixed: true,
      sort: "key",
      narrow: "title",
      value: (m) => m.key,
      cell: (m) => (
        <TextLink
          to="/runs/$run"
          params={{ run }}
          search={{ tab: "metrics", metrics: [m.key] }}
          className="min-w-0"
        >
          <Cut>{m.key}</Cut>
        </TextLink>
      ),
    },
    {
      id: "value",
      header: "Newest value",
      width: 110,
      align: "right",
      sort: "value",
      sortFirst: "desc",
      narrow: "end",
      value: (m) => metricNumber(m.value),
      cell: (m) => <span className="tabular-nums">{metricText(m.key, metricNumber(m.value))}</span>,
    },
    {
      id: "step",
      header: "Step",
      width: 80,
      align: "right",
      sort: "step",
      narrow: "hide",
      value: (m) => m.step,
      cell: (m) => <span className="text-muted tabular-nums">{count(m.step)}</span>,
    },
    {
      id: "at",
      header: "Logged",
      width: 100,
      align: "right",
      narrow: "hide",
      value: (m) => new Date(m.timestamp).toISOString(),
      cell: (m) => <Time at={m.timestamp} />,
    },
  ];
}

function Metrics({ parts: { run, row } }: { parts: RunParts }) {
  const columns = useMemo(() => metricColumns(row.id), [row.id]);
  return (
    <Panel title="Metrics" flush>
      <Rows
        id="run-metrics"
        label="Metrics"
        columns={columns}
        rows={run.data.metrics}
        rowId={KEY}
        csv="metrics"
        empty={
          <EmptyState title="No metrics yet" command={'mlflow.log_metric("loss", 0.5, step=1)'} />
        }
      />
    </Panel>
  );
}

interface Pair {
  key: string;
  value: string;
}

const PARAMS: readonly Column<Pair>[] = [
  {
    id: "key",
    header: "Param",
    width: 120,
    grow: 2,
    fixed: true,
    sort: "key",
    narrow: "title",
    value: (p) => p.key,
    cell: (p) => <Cut>{p.key}</Cut>,
  },
  {
    id: "value",
    header: "Value",
    width: 140,
    grow: 3,
    sort: "value",
    narrow: "end",
    value: (p) => p.value,
    cell: (p) => <Cut>{p.value}</Cut>,
  },
];

function Params({ parts: { run } }: { parts: RunParts }) {
  return (
    <Panel title="Params" flush>
      <Rows
        id="run-params"
        label="Params"
        columns={PARAMS}
        rows={run.data.params}
        rowId={KEY}
        csv="params"
        empty={<EmptyState title="No params" command={'mlflow.log_param("lr", 0.1)'} />}
      />
    </Panel>
  );
}

function About({
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
          tag("berth.project") !== undefined && [
            "Project",
            <bdi key="p">{tag("berth.project")}</bdi>,
          ],
          tag("berth.end") !== undefined && ["How it ended", <bdi key="e">{tag("berth.end")}</bdi>],
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
                <span className="text-warn">with changes that are in no commit</span>
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

function Tags({ parts: { row, team } }: { parts: RunParts }) {
  const may = useMay("JobsSubmit", { team, user: row.user });
  const change = useRunChange();
  const [asked, ask] = useState<{ name: string; value: string }>();
  const tags = tagsInOrder(row.tags);
  const remove = async (key: string) => {
    try {
      await change.mutateAsync({ do: "untag", run: row.id, key });
      toast(`Removed the tag ${key}`);
    } catch (e) {
      toast(`Not removed: ${asApiError(e).message}`, { tone: "bad" });
    }
  };
  return (
    <Panel
      title="Tags"
      flush
      actions={
        <Button
          look="quiet"
          size="sm"
          icon={Plus}
          denied={may.reason}
          onClick={() => ask({ name: "", value: "" })}
        >
          Set a tag
        </Button>
      }
    >
      {tags.length === 0 ? (
        <EmptyState title="No tags" command={'mlflow.set_tag("task", "vision")'} />
      ) : (
        <ul className="max-h-110 divide-y divide-line overflow-y-auto" aria-label="Tags">
          {tags.map(([key, value]) => (
            <li key={key} className="flex min-h-8 items-center gap-2 px-3 py-1">
              <bdi className="w-2/5 shrink-0 text-muted wrap-anywhere">{key}</bdi>
              <bdi className="line-clamp-3 min-w-0 flex-1 wrap-anywhere">{value}</bdi>
              {isOwnTag(key) && may.ok && (
                <>
                  <Button
                    look="quiet"
                    size="sm"
                    icon={Pencil}
                    iconOnly
                    onClick={() => ask({ name: key, value })}
                  >
                    {`Change ${key}`}
                  </Button>
                  <Button look="quiet" size="sm" icon={X} iconOnly onClick={() => void remove(key)}>
                    {`Remove ${key}`}
                  </Button>
                </>
              )}
            </li>
          ))}
        </ul>
      )}
      {asked && <TagDialog run={row.id} {...asked} onClose={() => ask(undefined)} />}
    </Panel>
  );
}

function Datasets({ parts: { run } }: { parts: RunParts }) {
  const all = run.inputs.dataset_inputs.map(datasetOf);
  return (
    <Panel title="Data" flush>
      {all.length === 0 ? (
        <EmptyState title="No data sets">
          Versions of data that a job mounts, and what the script logs by mlflow.log_input, stand
          here.
        </EmptyState>
      ) : (
        <ul className="max-h-110 divide-y divide-line overflow-y-auto">
          {all.map((one, i) => (
            <li key={i} className="flex min-w-0 flex-col px-3 py-1.5">
              <span className="flex min-w-0 items-center gap-2">
                {one.lineage ? (
                  <TextLink to="/lineage" search={{ of: one.lineage }} className="min-w-0">
                    <Cut>{one.name}</Cut>
                  </TextLink>
                ) : (
                  <Cut>{one.name}</Cut>
                )}
                {one.context && <span className="text-12 text-muted">{one.context}</span>}
              </span>
              <span className="truncate text-12 text-muted">
                <code>{one.digest}</code> {one.source && <bdi>{one.source}</bdi>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

/** Outputs that are asked for by name; a run has seldom more. */
const MOST_MODELS = 20;

function Models({ parts: { run, row, team } }: { parts: RunParts }) {
  const versions = useQuery({
    ...modelVersionsQuery(`run_id = '${row.id}'`, team),
    enabled: team !== undefined,
  });
  const ids = [...new Set(run.outputs.model_outputs.map((m) => m.model_id))].slice(0, MOST_MODELS);
  const logged = useQueries({ queries: ids.map((id) => loggedModelQuery(id)) });
  const none = (versions.data?.length ?? 0) === 0 && ids.length === 0;
  return (
    <Panel title="Models">
      {none ? (
        <EmptyState title="No models came of it yet">
          Models that the script logs, and versions that are registered from them, stand here.
        </EmptyState>
      ) : (
        <ul className="flex flex-col gap-1.5">
          {versions.data?.map((v) => (
            <li key={`${v.name}@${v.version}`} className="flex min-w-0 items-center gap-2">
              <TextLink
                to="/models/$model"
                params={{ model: v.name }}
                search={{ version: v.version, ...(team && { team }) }}
                className="min-w-0"
              >
                <Cut>{`${v.name} version ${v.version}`}</Cut>
              </TextLink>
              <span className="truncate text-12 text-muted">{v.aliases.join(", ")}</span>
            </li>
          ))}
          {ids.map((id, i) => {
            const model = logged[i]?.data;
            return (
              <li key={id} className="flex min-w-0 items-center gap-2">
                <Cut>{model?.info.name || id}</Cut>
                <span className="truncate text-12 text-muted">
                  logged{model?.info.model_type ? `, ${model.info.model_type}` : ""}
                </span>
              </li>
            );
          })}
        </ul>
      )}
    </Panel>
  );
}
