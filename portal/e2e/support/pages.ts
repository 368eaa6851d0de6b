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

/** Of what was tracked: an experiment with runs, and one of them. */
export type Tracked = { experiment: string; run: string };

function tracked({ experiment, run }: Tracked): [string, string][] {
  return [
    ["experiment", `/experiments/${experiment}`],
    ["parallel", `/experiments/${experiment}?view=parallel`],
    ["curves", `/experiments/${experiment}?view=curves`],
    ["scatter", `/experiments/${experiment}?view=scatter`],
    ["compare", `/experiments/${experiment}?view=compare&runs=${run}`],
    ["run", `/runs/${run}`],
    ["run-metrics", `/runs/${run}?tab=metrics`],
    ["run-artifacts", `/runs/${run}?tab=artifacts`],
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
