import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useOneTeam } from "@/api/one-team";
import {
  type ModelVersion,
  modelVersionsQuery,
  type RegisteredModel,
  registeredModelQuery,
} from "@/api/tracking";
import {
  Button,
  berth,
  ErrorState,
  Note,
  neighbour,
  Page,
  Skeleton,
  shell,
  sorted,
  Tabs,
  Time,
} from "@/design";
import { isPrompt } from "../models/model";
import { Changes } from "./Changes";
import { Compare } from "./Compare";
import { modelSharesQuery } from "./calls";
import { type Asked, ModelDialogs } from "./dialogs";
import { nameFilter } from "./filter";
import { AliasList, Description, TagList } from "./parts";
import { ReadOnly } from "./ReadOnly";
import { useModelRights } from "./rights";
import { SharesTab } from "./SharesTab";
import type { ModelSearch } from "./search";
import { VersionDrawer } from "./VersionDrawer";
import { columnsOf, NUMBER, Versions } from "./Versions";

const route = getRouteApi("/models/$model");

/** One registered model or prompt: its facts, versions and changes. */
export default function ModelPage() {
  const { model: name } = route.useParams();
  const search = route.useSearch();
  const team = useOneTeam(search.team);
  const model = useQuery({
    ...registeredModelQuery(name, team),
    enabled: team !== undefined,
  });
  const versions = useQuery({
    ...modelVersionsQuery(nameFilter(name), team),
    enabled: team !== undefined,
  });
  const path = [{ label: "Models", to: "/models" }];
  const error = model.error ?? versions.error;
  if (error && (!model.data || !versions.data))
    return (
      <Page title={name} path={path}>
        <ErrorState
          error={error}
          onRetry={() => void Promise.all([model.refetch(), versions.refetch()])}
        />
      </Page>
    );
  if (!model.data || !versions.data || !team)
    return (
      <Page title={name} path={path}>
        <div data-skeleton aria-busy="true" className="flex flex-col gap-3">
          <Skeleton width="45%" />
          <Skeleton width="70%" />
          <Skeleton height={160} />
        </div>
      </Page>
    );
  return <Loaded team={team} model={model.data} versions={versions.data} path={path} />;
}

function Loaded({
  team,
  model,
  versions: all,
  path,
}: {
  team: string;
  model: RegisteredModel;
  versions: readonly ModelVersion[];
  path: { label: string; to: string }[];
}) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const set = (change: ModelSearch) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace: true });
  const rights = useModelRights(team, model);
  const [asked, ask] = useState<Asked>();
  const prompt = isPrompt(model);
  const { owner, inside, change } = rights;
  const shares = useQuery({ ...modelSharesQuery(team, model.name), enabled: change !== undefined });
  const columns = useMemo(() => columnsOf(prompt, inside), [prompt, inside]);
  const versions = useMemo(
    () => sorted(all, columns, search.sort ?? "-version"),
    [all, columns, search.sort],
  );
  const find = (number: string | undefined) => all.find((v) => v.version === number);
  const open = (version: string | undefined) => set({ version });
  const [before, after] = (search.compare ?? []).map(find);
  const tab = search.tab === "shares" && !change ? "versions" : (search.tab ?? "versions");
  return (
    <Page
      title={model.name}
      path={path}
      heading={<bdi>{model.name}</bdi>}
      subtitle={
        <>
          {prompt ? "Prompt" : "Model"} of <bdi>{owner.team}</bdi>, by <bdi>{model.user_id}</bdi>,
          changed <Time at={model.last_updated_timestamp} />
        </>
      }
      command={berth(`models ${tab === "shares" ? "shares" : "versions"} ${shell(model.name)}`, {
        "--team": team,
      })}
      actions={
        change && (
          <Button
            look="danger"
            denied={change.manage.reason}
            onClick={() => ask({ kind: "delete" })}
          >
            {prompt ? "Delete prompt" : "Delete model"}
          </Button>
        )
      }
    >
      <div className="flex flex-col gap-3 pb-3">
        {!change && <ReadOnly rights={rights} prompt={prompt} version={search.version} />}
        <Description
          text={model.description}
          write={change?.write}
          onEdit={() => ask({ kind: "describe" })}
        />
        <div className="flex flex-wrap gap-x-6 gap-y-2">
          <Line label="Aliases">
            <AliasList aliases={model.aliases} write={change?.write} onAsk={ask} onOpen={open} />
          </Line>
          <Line label="Tags">
            <TagList tags={model.tags} write={change?.write} onAsk={ask} />
          </Line>
        </div>
      </div>
      <Tabs
        label="Views of the model"
        tabs={[
          { value: "versions", label: "Versions", count: all.length },
          { value: "changes", label: "Changes" },
          ...(change
            ? [{ value: "shares" as const, label: "Shared with", count: shares.data?.length }]
            : []),
        ]}
        value={tab}
        onChange={(to) =>
          set({ tab: to === "versions" ? undefined : to, compare: undefined, version: undefined })
        }
      >
        <div className="pt-4">
          {tab === "changes" ? (
            <Changes owner={owner} model={model} versions={all} onOpen={open} />
          ) : tab === "shares" && change ? (
            <SharesTab owner={owner} what={prompt ? "prompt" : "model"} manage={change.manage} />
          ) : before && after ? (
            <Compare
              before={before}
              after={after}
              prompt={prompt}
              rights={rights}
              same={search.same ?? false}
              onSame={(same) => set({ same: same || undefined })}
              onSwap={() => set({ compare: [after.version, before.version] })}
              onClose={() => set({ compare: undefined, same: undefined })}
            />
          ) : (
            <>
              {search.compare && (
                <div className="pb-3">
                  <Note tone="warn">Version {search.compare.join(" or ")} was deleted.</Note>
                </div>
              )}
              <Versions
                model={model}
                readOnly={!change}
                rows={versions}
                columns={columns}
                sort={search.sort ?? "-version"}
                onSort={(sort) => set({ sort })}
                open={search.version}
                onOpen={(v) => open(v.version)}
                onCompare={(pair) => set({ compare: pair, version: undefined })}
              />
            </>
          )}
        </div>
      </Tabs>
      <VersionDrawer
        team={team}
        model={model}
        version={find(search.version)}
        wanted={search.version}
        rights={rights}
        onAsk={ask}
        onClose={() => open(undefined)}
        onStep={(by) => {
          const next = neighbour(versions, NUMBER, search.version, by);
          if (next) open(next);
        }}
      />
      <ModelDialogs
        key={JSON.stringify(asked)}
        team={team}
        model={model}
        versions={versions}
        asked={asked}
        onClose={() => ask(undefined)}
        onDeleted={(version) => {
          if (version) open(undefined);
          else void navigate({ to: "/models", search: prompt ? { tab: "prompts" } : {} });
        }}
      />
    </Page>
  );
}

function Line({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div role="group" aria-label={label} className="flex min-w-0 flex-wrap items-center gap-2">
      <span className="text-12 text-muted">{label}</span>
      {children}
    </div>
  );
}
