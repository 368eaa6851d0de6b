import { useQueries } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { type Experiment, experimentsQuery, record, teamOf } from "@/api/tracking";
import { useSticky } from "@/app/sticky";
import {
  berth,
  type Column,
  Cut,
  EmptyState,
  None,
  Page,
  SearchInput,
  Switch,
  sorted,
  Table,
  TextLink,
  Time,
} from "@/design";
import type { ExperimentsSearch } from "./search";
import { beginCommand, plainName, useTrackingTeams } from "./teams";

const route = getRouteApi("/experiments");

interface Listed {
  id: string;
  name: string;
  team: string;
  created: number;
  updated: number;
  note: string | undefined;
}

const ID = (e: Listed) => e.id;

const COLUMNS: readonly Column<Listed>[] = [
  {
    id: "name",
    header: "Experiment",
    width: 200,
    grow: 4,
    fixed: true,
    sort: "name",
    narrow: "title",
    value: (e) => e.name,
    cell: (e) => (
      <TextLink
        to="/experiments/$experiment"
        params={{ experiment: e.id }}
        className="min-w-0 font-medium text-fg!"
      >
        <Cut>{e.name}</Cut>
      </TextLink>
    ),
  },
  {
    id: "team",
    header: "Team",
    width: 120,
    grow: 1,
    sort: "team",
    narrow: "meta",
    value: (e) => e.team,
    cell: (e) => <Cut className="text-muted">{e.team}</Cut>,
  },
  {
    id: "note",
    header: "About",
    width: 160,
    grow: 4,
    narrow: "hide",
    hint: "The tag mlflow.note.content of the experiment",
    value: (e) => e.note,
    cell: (e) => (e.note ? <Cut className="text-muted">{e.note}</Cut> : <None />),
  },
  {
    id: "created",
    header: "Created",
    width: 120,
    align: "right",
    sort: "created",
    sortFirst: "desc",
    narrow: "meta",
    value: (e) => e.created,
    cell: (e) => <Time at={e.created} />,
  },
  {
    id: "updated",
    header: "Changed",
    width: 120,
    align: "right",
    sort: "updated",
    sortFirst: "desc",
    narrow: "hide",
    hint: "When the name, the tags or the sharing changed. Runs do not count.",
    value: (e) => e.updated,
    cell: (e) => <Time at={e.updated} />,
  },
  {
    id: "id",
    header: "Id",
    width: 72,
    align: "right",
    hidden: true,
    narrow: "hide",
    value: (e) => e.id,
    cell: (e) => <span className="text-muted tabular-nums">{e.id}</span>,
  },
];

export default function ExperimentsPage() {
  const search = route.useSearch() as ExperimentsSearch & { team?: string };
  const navigate = route.useNavigate();
  const set = (change: Partial<ExperimentsSearch>) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const teams = useTrackingTeams();
  const list = useQueries({
    queries: (teams ?? []).map((team) => experimentsQuery(team, search.deleted ?? false)),
    combine: (all) => ({
      data: all.some((q) => q.data) || (teams && all.length === 0) ? merged(all) : undefined,
      // If one team fails, the page still shows the others.
      error: all.find((q) => q.error)?.error ?? undefined,
      failureReason: all.find((q) => q.failureReason)?.failureReason ?? undefined,
      refetch: () => Promise.all(all.map((q) => q.refetch())),
      pending: all.some((q) => q.isPending),
    }),
  });
  const error = useSticky(list);
  const rows = useMemo(() => {
    const word = search.q?.toLowerCase();
    const found = list.data?.filter(
      (e) => !word || `${e.name} ${e.team} ${e.note ?? ""}`.toLowerCase().includes(word),
    );
    return found && sorted(found, COLUMNS, search.sort ?? "-created");
  }, [list.data, search.q, search.sort]);

  return (
    <Page
      title="Experiments"
      fill
      command={berth("experiments list", { "--team": search.team, "--all": search.deleted })}
    >
      <Table
        id="experiments"
        label="Experiments"
        columns={COLUMNS}
        rows={list.pending && !rows?.length ? undefined : rows}
        rowId={ID}
        error={error}
        onRetry={() => void list.refetch()}
        sort={search.sort}
        onSort={(sort) => set({ sort })}
        onOpen={(e) =>
          void navigate({ to: "/experiments/$experiment", params: { experiment: e.id } })
        }
        csv="experiments"
        toolbar={
          <>
            <SearchInput
              label="Search experiments"
              placeholder="Name, team or note"
              value={search.q}
              onChange={(q) => set({ q: q || undefined })}
              className="w-60 max-md:w-full"
            />
            <Switch
              label="Deleted"
              checked={search.deleted ?? false}
              onChange={(on) => set({ deleted: on || undefined })}
            />
          </>
        }
        empty={<Empty filtered={Boolean(search.q || search.deleted)} teams={teams?.length ?? 0} />}
      />
    </Page>
  );
}

function merged(answers: readonly { data?: Experiment[] | undefined }[]): Listed[] {
  const found = new Map<string, Listed>();
  for (const experiment of answers.flatMap((a) => a.data ?? []))
    found.set(experiment.experiment_id, {
      id: experiment.experiment_id,
      name: plainName(experiment),
      team: teamOf(experiment.artifact_location) ?? "",
      created: experiment.creation_time,
      updated: experiment.last_update_time,
      note: record(experiment.tags)["mlflow.note.content"],
    });
  return [...found.values()];
}

function Empty({ filtered, teams }: { filtered: boolean; teams: number }) {
  if (teams === 0)
    return (
      <EmptyState title="You are not in a team">
        Experiments belong to teams. Ask a lead to add you to one.
      </EmptyState>
    );
  if (filtered) return <EmptyState title="No experiment matches" />;
  return (
    <EmptyState title="No experiments yet" command={beginCommand()}>
      Berth serves the tracking API of MLflow. A script that logs with MLflow&apos;s client needs
      the address of this server and a token. Jobs of Berth have both already.
    </EmptyState>
  );
}
