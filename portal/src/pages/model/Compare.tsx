import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { loggedModelQuery, type ModelVersion, runQuery } from "@/api/tracking";
import {
  Button,
  type Column,
  Cut,
  EmptyState,
  ErrorNote,
  Money,
  None,
  Note,
  Panel,
  Segmented,
  Skeleton,
  Table,
  TextLink,
  Time,
} from "@/design";
import { DiffView } from "@/viz/code-editor";
import { promptText } from "../models/model";
import { type Compared, changeText, compared, sideOf, valueText } from "./compare";
import { isClosed, type ModelRights } from "./rights";
import { ClosedRun, costOf } from "./VersionDrawer";

function useSide(version: ModelVersion) {
  const run = useQuery({
    ...runQuery(version.run_id ?? ""),
    enabled: Boolean(version.run_id),
    retry: false,
  });
  const logged = useQuery({
    ...loggedModelQuery(version.model_id ?? ""),
    enabled: Boolean(version.model_id),
    retry: false,
  });
  const ready = (!version.run_id || run.isFetched) && (!version.model_id || logged.isFetched);
  return { version, run: run.data, logged: logged.data, error: run.error ?? logged.error, ready };
}

type Side = ReturnType<typeof useSide>;

/** Compares two versions: their runs, metrics, params, tags and texts. */
export function Compare({
  before,
  after,
  prompt,
  rights,
  same,
  onSame,
  onSwap,
  onClose,
}: {
  before: ModelVersion;
  after: ModelVersion;
  prompt: boolean;
  rights: ModelRights;
  same: boolean;
  onSame: (same: boolean) => void;
  onSwap: () => void;
  onClose: () => void;
}) {
  const a = useSide(before);
  const b = useSide(after);
  const ready = a.ready && b.ready;
  const rows = useMemo(
    () =>
      ready
        ? compared(sideOf(a.version, a.run, a.logged), sideOf(b.version, b.run, b.logged))
        : undefined,
    [ready, a.version, a.run, a.logged, b.version, b.run, b.logged],
  );
  const shown = same ? rows : rows?.filter((r) => r.differs);
  return (
    <div className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center gap-2">
        <Button onClick={onClose}>All versions</Button>
        <Button onClick={onSwap}>Swap</Button>
        <Segmented
          label="Values"
          options={[
            { value: "differs", label: "Differences" },
            { value: "all", label: "All" },
          ]}
          value={same ? "all" : "differs"}
          onChange={(to) => onSame(to === "all")}
        />
      </div>
      <div className="grid gap-4 md:grid-cols-2">
        <Head side={a} prompt={prompt} rights={rights} />
        <Head side={b} prompt={prompt} rights={rights} />
      </div>
      {prompt ? (
        <DiffView
          title="Text"
          before={promptText(before) ?? ""}
          after={promptText(after) ?? ""}
          beforeLabel={`version ${before.version}`}
          afterLabel={`version ${after.version}`}
        />
      ) : null}
      <Panel title="Metrics, params and tags" flush>
        <Table
          id="model-compare"
          label={`Versions ${before.version} and ${after.version}`}
          columns={columnsOf(before, after)}
          rows={shown}
          rowId={ID}
          fit={(shown?.length ?? 0) <= 200}
          csv={`${before.name.replace("/", "-")}-${before.version}-${after.version}`}
          empty={
            rows && rows.length > 0 ? (
              <EmptyState
                title="No differences"
                action={<Button onClick={() => onSame(true)}>All values</Button>}
              />
            ) : (
              <EmptyState title="No metrics, params or tags">
                A version has those of its source run.
              </EmptyState>
            )
          }
        />
      </Panel>
    </div>
  );
}

const ID = (r: Compared) => r.id;

function Head({
  side: { version, run, error, ready },
  prompt,
  rights,
}: {
  side: Side;
  prompt: boolean;
  rights: ModelRights;
}) {
  return (
    <Panel title={`Version ${version.version}`}>
      <div className="flex flex-col gap-1">
        <p className="flex flex-wrap gap-x-2">
          <bdi>{version.user_id}</bdi>
          <span className="text-muted">
            <Time at={version.creation_timestamp} />
          </span>
          {version.aliases.length > 0 && <bdi>@{version.aliases.join(" @")}</bdi>}
          {version.current_stage !== "None" && <span>{version.current_stage}</span>}
        </p>
        {!ready ? (
          <Skeleton width="50%" />
        ) : !run && version.run_id && isClosed(error, rights) ? (
          <ClosedRun id={version.run_id} team={rights.owner.team} />
        ) : error && !isClosed(error, rights) ? (
          <ErrorNote error={error} />
        ) : run ? (
          <p className="flex flex-wrap items-baseline gap-x-2">
            <TextLink to="/runs/$run" params={{ run: run.info.run_id }}>
              <bdi>{run.info.run_name || run.info.run_id}</bdi>
            </TextLink>
            {costOf(run) !== undefined && (
              <span className="text-muted">
                cost <Money micros={costOf(run)} />
              </span>
            )}
          </p>
        ) : prompt ? null : (
          <Note>The version has no source run, so Berth knows only its tags.</Note>
        )}
      </div>
    </Panel>
  );
}

const WORDS = { metric: "Metric", param: "Param", tag: "Tag" } as const;

function columnsOf(before: ModelVersion, after: ModelVersion): Column<Compared>[] {
  const value = (of: Compared, side: "before" | "after") => {
    const text = valueText(of.key, of[side]);
    return text === undefined ? <None /> : <Cut className="tabular-nums">{text}</Cut>;
  };
  return [
    {
      id: "key",
      header: "Name",
      cell: (r) => <Cut className={r.differs ? "font-medium" : "text-muted"}>{r.key}</Cut>,
      value: (r) => r.key,
      width: 170,
      grow: 2,
      fixed: true,
      narrow: "title",
    },
    {
      id: "what",
      header: "Kind",
      cell: (r) => <span className="text-muted">{WORDS[r.what]}</span>,
      value: (r) => WORDS[r.what],
      width: 80,
      narrow: "hide",
    },
    {
      id: "before",
      header: `Version ${before.version}`,
      cell: (r) => value(r, "before"),
      value: (r) => r.before ?? "",
      width: 130,
      grow: 1,
      narrow: "meta",
    },
    {
      id: "after",
      header: `Version ${after.version}`,
      cell: (r) => value(r, "after"),
      value: (r) => r.after ?? "",
      width: 130,
      grow: 1,
      narrow: "meta",
    },
    {
      id: "change",
      header: "Change",
      cell: (r) => {
        const text = changeText(r);
        return text ? <span className="tabular-nums">{text}</span> : <None />;
      },
      value: (r) => r.change,
      width: 150,
      align: "right",
      narrow: "end",
    },
  ];
}
