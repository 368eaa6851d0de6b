// Every page of the portal, and when it is ready to be looked at.
import type { Page } from "playwright-core";

export type Stop = { name: string; path: string; ready: (page: Page) => Promise<void> };

const heading = async (page: Page) => {
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  // Skeletons have gone.
  await page.waitForFunction(
    () => !document.querySelector("[aria-busy=true], [data-skeleton]"),
    undefined,
    { timeout: 15_000 },
  );
};

/** Of what was tracked: an experiment with runs, one of them, and a model with two versions. */
export type Tracked = { experiment: string; run: string; model: string };

function tracked({ experiment, run, model }: Tracked): [string, string][] {
  return [
    ["experiment", `/experiments/${experiment}`],
    ["parallel", `/experiments/${experiment}?view=parallel`],
    ["curves", `/experiments/${experiment}?view=curves`],
    ["scatter", `/experiments/${experiment}?view=scatter`],
    ["compare", `/experiments/${experiment}?view=compare&runs=${run}`],
    ["run", `/runs/${run}`],
    ["run-metrics", `/runs/${run}?tab=metrics`],
    ["run-artifacts", `/runs/${run}?tab=artifacts`],
    ["model", `/models/${model}`],
    ["model-version", `/models/${model}?version=2`],
    ["model-compare", `/models/${model}?compare=1,2&same=true`],
    ["model-changes", `/models/${model}?tab=changes`],
    ["lineage", `/lineage?of=model:${model}@2&view=graph`],
    ["lineage-list", `/lineage?of=model:${model}@2&view=list`],
  ];
}

export function pages(job: string, of?: Tracked): Stop[] {
  const at = (name: string, path: string): Stop => ({ name, path, ready: heading });
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
    at("experiments", "/experiments"),
    ...(of ? tracked(of) : []).map(([name, path]) => at(name, path)),
    at("models", "/models"),
    at("prompts", "/models?tab=prompts"),
    at("data", "/models?tab=data"),
    at("lineage-start", "/lineage"),
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
