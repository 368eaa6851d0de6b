import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo } from "react";
import { useOneTeam } from "@/api/one-team";
import { registeredModelsQuery } from "@/api/tracking";
import { berth, Page, SearchInput, Segmented, sorted, Table, Tabs } from "@/design";
import { columnsOf, NoModels } from "./columns";
import { DataTab } from "./DataTab";
import { belongs, fits, PROMPTS, sharedBy } from "./model";
import { type ModelsSearch, type ModelsTab, TABS } from "./search";

const route = getRouteApi("/models");

const LABELS: Record<ModelsTab, string> = { models: "Models", prompts: "Prompts", data: "Data" };

/** The models, prompts and data of teams. */
export default function ModelsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const team = useOneTeam(search.team);
  const tab = search.tab ?? "models";
  const set = (change: ModelsSearch) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const command =
    tab === "data"
      ? berth("data ls", { "--team": team })
      : berth("models list", {
          "--team": team,
          "--filter": tab === "prompts" ? PROMPTS : undefined,
        });
  return (
    <Page
      title={LABELS[tab]}
      fill
      command={command}
      subtitle={team && !search.team ? `of your team ${team}` : undefined}
    >
      <Tabs
        label="Kind"
        tabs={TABS.map((value) => ({ value, label: LABELS[value] }))}
        value={tab}
        onChange={(to) =>
          set({
            tab: to === "models" ? undefined : to,
            q: undefined,
            whose: undefined,
            sort: undefined,
            open: undefined,
          })
        }
      >
        <div className="flex h-full min-h-0 flex-col pt-3">
          {team === undefined ? null : tab === "data" ? (
            <DataTab team={team} search={search} onSearch={set} />
          ) : (
            <List
              key={tab}
              team={team}
              prompts={tab === "prompts"}
              search={search}
              onSearch={set}
            />
          )}
        </div>
      </Tabs>
    </Page>
  );
}

function List({
  team,
  prompts,
  search,
  onSearch,
}: {
  team: string;
  prompts: boolean;
  search: ModelsSearch;
  onSearch: (change: ModelsSearch) => void;
}) {
  const navigate = route.useNavigate();
  const models = useQuery(registeredModelsQuery(team, prompts ? PROMPTS : ""));
  const shared = models.data?.some((m) => sharedBy(m.name)) ?? false;
  const columns = useMemo(() => columnsOf(prompts, shared), [prompts, shared]);
  const rows = useMemo(() => {
    const found = models.data?.filter((m) => belongs(m, search.whose) && fits(m, search.q));
    return found && sorted(found, columns, search.sort ?? "name");
  }, [models.data, search.q, search.whose, search.sort, columns]);
  return (
    <Table
      id={prompts ? "prompts" : "models"}
      label={prompts ? "Prompts" : "Registered models"}
      columns={columns}
      rows={rows}
      rowId={NAME}
      error={models.error ?? undefined}
      onRetry={() => void models.refetch()}
      sort={search.sort ?? "name"}
      onSort={(sort) => onSearch({ sort })}
      onOpen={(m) =>
        void navigate({
          to: "/models/$model",
          params: { model: m.name },
          search: { team },
        })
      }
      csv={prompts ? "prompts" : "models"}
      toolbar={
        <>
          <SearchInput
            label={prompts ? "Search prompts" : "Search models"}
            placeholder="Name, tag or alias"
            value={search.q}
            onChange={(q) => onSearch({ q: q || undefined })}
            className="w-60 max-md:w-full"
          />
          {(shared || search.whose) && (
            <Segmented
              label="Owner"
              options={[
                { value: "all", label: "All" },
                { value: "own", label: `Of ${team}` },
                { value: "shared", label: "Shared by others" },
              ]}
              value={search.whose ?? "all"}
              onChange={(whose) => onSearch({ whose: whose === "all" ? undefined : whose })}
            />
          )}
        </>
      }
      empty={
        <NoModels
          team={team}
          prompts={prompts}
          filtered={Boolean(search.q || search.whose)}
          clear={() => onSearch({ q: undefined, whose: undefined })}
        />
      }
    />
  );
}

const NAME = (m: { name: string }) => m.name;
