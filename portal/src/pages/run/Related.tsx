import { useQueries, useQuery } from "@tanstack/react-query";
import { loggedModelQuery, modelVersionsQuery } from "@/api/tracking";
import { Cut, EmptyState, Panel, TextLink } from "@/design";
import { datasetOf, type RunParts } from "./model";

/** The data sets that the run read. */
export function Datasets({ parts: { run } }: { parts: RunParts }) {
  const all = run.inputs.dataset_inputs.map(datasetOf);
  return (
    <Panel title="Data" flush>
      {all.length === 0 ? (
        <EmptyState title="No data sets">
          Berth records the versions of data that a job mounts. A script logs others with
          mlflow.log_input.
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

/** The maximum number of logged models, because each takes a request. */
const MOST_MODELS = 20;

/** The models that the run logged, and the versions registered from it. */
export function Models({ parts: { run, row, team } }: { parts: RunParts }) {
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
        <EmptyState title="No models yet">
          A script logs models with mlflow.log_model, and registers versions of them.
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
