import { useState } from "react";
import type { ModelVersion, RegisteredModel } from "@/api/tracking";
import { Button, type Column, Cut, EmptyState, None, Panel, Table, TextLink, Time } from "@/design";
import { ownTags, promptText } from "../models/model";

export const NUMBER = (v: ModelVersion) => v.version;

/**
 * The columns of versions. Prompts have a text in place of a stage and a run. Runs are links if the user
 * may read those of the team that owns the model.
 */
export function columnsOf(prompt: boolean, inside = true): readonly Column<ModelVersion>[] {
  const all: Column<ModelVersion>[] = [
    {
      id: "version",
      header: "Version",
      cell: (v) => <span className="font-medium tabular-nums">{v.version}</span>,
      value: (v) => Number(v.version),
      sort: "version",
      sortFirst: "desc",
      width: 80,
      fixed: true,
      narrow: "title",
    },
    {
      id: "aliases",
      header: "Aliases",
      cell: (v) => (v.aliases.length > 0 ? <Cut>{v.aliases.join(", ")}</Cut> : <None />),
      value: (v) => v.aliases.join(", "),
      width: 130,
      grow: 1,
      narrow: "end",
    },
    {
      id: "stage",
      header: "Stage",
      cell: (v) => (v.current_stage === "None" ? <None /> : v.current_stage),
      value: (v) => (v.current_stage === "None" ? "" : v.current_stage),
      sort: "stage",
      width: 100,
      narrow: "meta",
    },
    {
      id: "text",
      header: "Text",
      cell: (v) => <Cut>{(promptText(v) ?? "").slice(0, 300)}</Cut>,
      value: (v) => promptText(v) ?? "",
      width: 220,
      grow: 3,
      narrow: "meta",
    },
    {
      id: "description",
      header: "Description",
      cell: (v) => (v.description ? <Cut>{v.description}</Cut> : <None />),
      value: (v) => v.description ?? "",
      width: 160,
      grow: 2,
      narrow: "hide",
    },
    {
      id: "run",
      header: "Run",
      cell: (v) =>
        v.run_id && !inside ? (
          // A user who cannot read the run gets its id and no dead link.
          <span className="block min-w-0 truncate font-mono text-12 text-muted">
            {v.run_id.slice(0, 8)}
          </span>
        ) : v.run_id ? (
          <TextLink
            to="/runs/$run"
            params={{ run: v.run_id }}
            className="block min-w-0 truncate font-mono text-12"
          >
            {v.run_id.slice(0, 8)}
          </TextLink>
        ) : (
          <None />
        ),
      value: (v) => v.run_id ?? "",
      width: 100,
      narrow: "hide",
    },
    {
      id: "tags",
      header: "Tags",
      cell: (v) => {
        const tags = ownTags(v.tags);
        return tags.length > 0 ? (
          <Cut>{tags.map((t) => (t.value ? `${t.key}=${t.value}` : t.key)).join(", ")}</Cut>
        ) : (
          <None />
        );
      },
      value: (v) =>
        ownTags(v.tags)
          .map((t) => `${t.key}=${t.value}`)
          .join(", "),
      width: 140,
      grow: 1,
      narrow: "hide",
    },
    {
      id: "by",
      header: "Made by",
      cell: (v) => <Cut>{v.user_id}</Cut>,
      value: (v) => v.user_id,
      sort: "by",
      width: 110,
      narrow: "meta",
    },
    {
      id: "made",
      header: "Made",
      cell: (v) => <Time at={v.creation_timestamp} />,
      value: (v) => new Date(v.creation_timestamp).toISOString(),
      sort: "made",
      sortFirst: "desc",
      width: 100,
      align: "right",
      narrow: "meta",
    },
  ];
  const without = prompt ? ["stage", "run"] : ["text"];
  return all.filter((c) => !without.includes(c.id));
}

export function Versions({
  model,
  readOnly,
  rows,
  columns,
  sort,
  onSort,
  open,
  onOpen,
  onCompare,
}: {
  model: RegisteredModel;
  readOnly: boolean;
  rows: readonly ModelVersion[];
  columns: readonly Column<ModelVersion>[];
  sort: string;
  onSort: (sort: string | undefined) => void;
  open: string | undefined;
  onOpen: (version: ModelVersion) => void;
  onCompare: (pair: string[]) => void;
}) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  return (
    <Panel title="Versions" flush>
      <div className={rows.length > 50 ? "flex h-[60vh] flex-col" : undefined}>
        <Table
          id="model-versions"
          label={`Versions of ${model.name}`}
          columns={columns}
          rows={rows}
          rowId={NUMBER}
          fit={rows.length <= 50}
          sort={sort}
          onSort={onSort}
          open={open}
          onOpen={onOpen}
          selected={selected}
          onSelect={setSelected}
          bulk={(some) => (
            <Button
              look="primary"
              size="sm"
              denied={some.length === 2 ? undefined : "Select two versions to compare them."}
              onClick={() => onCompare(some.map(NUMBER).sort((a, b) => Number(a) - Number(b)))}
            >
              Compare
            </Button>
          )}
          csv={`${model.name.replace("/", "-")}-versions`}
          empty={
            <EmptyState title="No versions yet">
              {!readOnly && (
                <>
                  A script makes one:{" "}
                  <code>mlflow.register_model("runs:/RUN_ID/model", "{model.name}")</code>
                </>
              )}
            </EmptyState>
          }
        />
      </div>
    </Panel>
  );
}
