import { berth, shell } from "@/design";
import type { JobSearch, JobTab } from "./search";

/** The command that answers what a tab shows. */
export function commandOf(id: string, tab: JobTab, search: JobSearch): string {
  const job = shell(id);
  switch (tab) {
    case "overview":
      return berth(`why ${job}`);
    case "logs":
      return berth(`logs ${job}`, {
        "-f": !search.q,
        "--search": search.q,
        "--task": search.task,
        "--rank": search.rank,
        "--attempt": search.attempt,
      });
    case "metrics":
      return berth(`metrics ${job}`, {
        "-w": true,
        "--since": search.span === "all" ? undefined : search.span,
      });
    case "events":
      return berth(`timeline ${job}`);
    case "files":
      return berth(`files ${job}${search.path ? ` ${shell(search.path)}` : ""}`);
    case "file":
      return `curl -H "Authorization: Bearer $BERTH_TOKEN" "$BERTH_URL/v1/jobs/${id}/file"`;
    case "terminal":
      return berth(`shell ${job}`);
  }
}
