// Every page of the portal, and how to wait until it is complete.
import type { Page } from "playwright-core";

export type Stop = {
  name: string;
  path: string;
  ready: (page: Page) => Promise<void>;
  /** Shows what the team has tracked. */
  tracked?: true;
};

const heading = async (page: Page) => {
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  // Wait until no skeleton is left.
  await page.waitForFunction(
    () => !document.querySelector("[aria-busy=true], [data-skeleton]"),
    undefined,
    { timeout: 15_000 },
  );
};

/** An experiment; runs, the first of a job with data; and a model with three versions. */
export type Tracked = { experiment: string; runs: readonly string[]; model: string };

function tracked({ experiment, runs, model }: Tracked): [string, string][] {
  const run = runs[0] as string;
  const all = runs.join(",");
  return [
    ["experiment", `/experiments/${experiment}`],
    ["parallel", `/experiments/${experiment}?view=parallel`],
    ["curves", `/experiments/${experiment}?view=curves&metrics=loss,accuracy&smooth=0.6`],
    ["scatter", `/experiments/${experiment}?view=scatter`],
    ["compare", `/experiments/${experiment}?view=compare&runs=${all}&same=true`],
    ["run", `/runs/${run}`],
    ["run-metrics", `/runs/${run}?tab=metrics`],
    ["run-artifacts", `/runs/${run}?tab=artifacts`],
    ["run-artifact", `/runs/${run}?tab=artifacts&file=metrics.json`],
    ["run-reproduce", `/runs/${run}?reproduce=true`],
    ["model", `/models/${model}`],
    ["model-version", `/models/${model}?version=2`],
    ["model-compare", `/models/${model}?compare=1,2&same=true`],
    ["model-changes", `/models/${model}?tab=changes`],
    ["lineage", `/lineage?of=model:${model}@2&view=graph`],
    ["lineage-node", `/lineage?of=model:${model}@2&view=graph&node=run:${run}`],
    ["lineage-list", `/lineage?of=model:${model}@2&view=list`],
  ];
}

export function pages(job: string, of: Tracked): Stop[] {
  const at = (name: string, path: string): Stop => ({ name, path, ready: heading });
  const ofTeam = (name: string, path: string): Stop => ({ ...at(name, path), tracked: true });
  return [
    at("home", "/"),
    at("jobs", "/jobs"),
    at("job", `/jobs/${job}`),
    at("job-logs", `/jobs/${job}?tab=logs`),
    at("job-metrics", `/jobs/${job}?tab=metrics`),
    at("job-events", `/jobs/${job}?tab=events`),
    at("job-files", `/jobs/${job}?tab=files`),
    at("job-file", `/jobs/${job}?tab=file`),
    at("new", "/new"),
    at("new-from", `/new?from=${job}`),
    at("queue", "/queue"),
    at("cluster", "/cluster"),
    at("nodes", "/cluster?view=nodes"),
    at("gantt", "/cluster?view=gantt"),
    at("costs", "/costs"),
    ofTeam("experiments", "/experiments"),
    ...tracked(of).map(([name, path]) => ofTeam(name, path)),
    ofTeam("models", "/models"),
    ofTeam("prompts", "/models?tab=prompts"),
    ofTeam("data", "/models?tab=data"),
    ofTeam("data-version", "/models?tab=data&open=c4@v2"),
    ofTeam("lineage-start", "/lineage"),
    at("admin-teams", "/admin?tab=teams"),
    at("admin-people", "/admin?tab=people"),
    at("admin-tokens", "/admin?tab=tokens"),
    at("admin-sessions", "/admin?tab=sessions"),
    at("admin-secrets", "/admin?tab=secrets"),
    at("admin-policy", "/admin?tab=policy"),
    at("admin-schedules", "/admin?tab=schedules"),
    at("admin-audit", "/admin?tab=audit"),
    at("admin-health", "/admin?tab=health"),
    at("help", "/help/BRT0005"),
    at("device", "/device"),
  ];
}
