import type { RegisteredModel } from "@/api/tracking";
import { Button, type Column, Cut, EmptyState, None, TextLink, Time } from "@/design";
import { newest, ownTags, sharedBy, stagesOf } from "./model";

const iso = (ms: number) => new Date(ms).toISOString();

const COLUMNS: readonly Column<RegisteredModel>[] = [
  {
    id: "name",
    header: "Name",
    cell: (m) => (
      <TextLink to="/models/$model" params={{ model: m.name }} className="block min-w-0">
        <Cut>{m.name}</Cut>
      </TextLink>
    ),
    value: (m) => m.name,
    sort: "name",
    width: 180,
    grow: 2,
    fixed: true,
    narrow: "title",
  },
  {
    id: "shared",
    header: "Shared by",
    hint: "The team that owns the model. Your team can read it and cannot change it.",
    cell: (m) => {
      const owner = sharedBy(m.name);
      return owner ? <Cut>{owner.team}</Cut> : <None />;
    },
    value: (m) => sharedBy(m.name)?.team ?? "",
    sort: "shared",
    width: 110,
    narrow: "meta",
  },
  {
    id: "newest",
    header: "Newest",
    hint: "The newest version",
    cell: (m) => newest(m)?.version ?? <None />,
    value: (m) => (newest(m) ? Number(newest(m)?.version) : null),
    sort: "newest",
    sortFirst: "desc",
    width: 84,
    align: "right",
    narrow: "end",
  },
  {
    id: "aliases",
    header: "Aliases",
    cell: (m) =>
      m.aliases.length > 0 ? (
        <Cut>{m.aliases.map((a) => `${a.alias} → ${a.version}`).join(", ")}</Cut>
      ) : (
        <None />
      ),
    value: (m) => m.aliases.map((a) => `${a.alias} → ${a.version}`).join(", "),
    width: 170,
    grow: 2,
    narrow: "meta",
  },
  {
    id: "stages",
    header: "Stages",
    cell: (m) => {
      const stages = stagesOf(m);
      return stages.length > 0 ? (
        <Cut>{stages.map((s) => `${s.stage} ${s.version}`).join(", ")}</Cut>
      ) : (
        <None />
      );
    },
    value: (m) =>
      stagesOf(m)
        .map((s) => `${s.stage} ${s.version}`)
        .join(", "),
    width: 150,
    grow: 1,
    narrow: "hide",
  },
  {
    id: "tags",
    header: "Tags",
    cell: (m) => {
      const tags = ownTags(m.tags);
      return tags.length > 0 ? (
        <Cut>{tags.map((t) => (t.value ? `${t.key}=${t.value}` : t.key)).join(", ")}</Cut>
      ) : (
        <None />
      );
    },
    value: (m) =>
      ownTags(m.tags)
        .map((t) => `${t.key}=${t.value}`)
        .join(", "),
    width: 150,
    grow: 1,
    narrow: "hide",
  },
  {
    id: "by",
    header: "Made by",
    cell: (m) => <Cut>{m.user_id}</Cut>,
    value: (m) => m.user_id,
    sort: "by",
    width: 110,
    narrow: "meta",
  },
  {
    id: "changed",
    header: "Changed",
    cell: (m) => <Time at={m.last_updated_timestamp} />,
    value: (m) => iso(m.last_updated_timestamp),
    sort: "changed",
    sortFirst: "desc",
    width: 110,
    align: "right",
    narrow: "meta",
  },
];

/** Prompts have no stages. The column of owners is there if other teams share something. */
export function columnsOf(prompts: boolean, shared: boolean): readonly Column<RegisteredModel>[] {
  return COLUMNS.filter((c) => !(prompts && c.id === "stages") && (shared || c.id !== "shared"));
}

export function NoModels({
  team,
  prompts,
  filtered,
  clear,
}: {
  team: string;
  prompts: boolean;
  filtered: boolean;
  clear: () => void;
}) {
  if (filtered)
    return (
      <EmptyState
        title={prompts ? "No prompt matches" : "No model matches"}
        action={<Button onClick={clear}>{prompts ? "All prompts" : "All models"}</Button>}
      />
    );
  return (
    <EmptyState
      title={`Team ${team} has no ${prompts ? "prompts" : "registered models"} yet`}
      command="export MLFLOW_TRACKING_TOKEN=$(berth token create training --scope jobs)"
    >
      <p>
        {prompts
          ? "Register a prompt with MLflow's client:"
          : "A script registers a model with MLflow's client. In a job it needs no token:"}
      </p>
      <pre
        tabIndex={0}
        className="mt-2 overflow-x-auto rounded-md border border-line bg-surface p-3 text-left font-mono text-12 text-fg"
      >
        {prompts
          ? 'mlflow.genai.register_prompt(\n    name="answer",\n    template="Answer {{question}}")'
          : 'mlflow.pytorch.log_model(\n    model, name="model",\n    registered_model_name="chat")'}
      </pre>
    </EmptyState>
  );
}
