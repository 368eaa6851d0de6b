import type { Job } from "@/api/types";
import { Chip, Facts, Mono, Panel, TextLink, Time } from "@/design";
import { className } from "../../new-job/model/rights";

/** Who, for what, and the words to find it by. */
export function About({ job }: { job: Job }) {
  const labels = Object.entries(job.labels);
  const parameters = Object.entries(job.parameters ?? {});
  const array = /^(\d+)_\d+$/.exec(job.id)?.[1];
  const jobs = (search: Record<string, string>, text: string) => (
    <TextLink to="/jobs" search={search}>
      <bdi>{text}</bdi>
    </TextLink>
  );
  return (
    <Panel title="About">
      <Facts
        items={[
          ["User", jobs({ user: job.user }, job.user)],
          ["Team, queue", jobs({ team: job.team }, job.team)],
          Boolean(job.project) && ["Project", jobs({ project: job.project }, job.project)],
          Boolean(job.experiment) && [
            "Experiment",
            jobs({ experiment: job.experiment }, job.experiment),
          ],
          Boolean(job.run) && [
            "Run",
            <TextLink
              key="run"
              to="/runs/$run"
              params={{ run: job.run ?? "" }}
              className="block truncate"
            >
              {job.run}
            </TextLink>,
          ],
          ["Priority", className(job.priority)],
          ["Asks for", asked(job.asks)],
          array !== undefined && [
            "Array",
            <TextLink key="array" to="/jobs/$job" params={{ job: array }}>
              {array}
            </TextLink>,
          ],
          ["Submitted", <Time key="at" at={job.submitted} as="both" />],
          Boolean(job.url) && [
            "URL",
            <span key="url" className="wrap-anywhere">
              {/^https?:\/\//.test(job.url ?? "") ? (
                <a
                  href={job.url ?? ""}
                  rel="noreferrer"
                  target="_blank"
                  className="text-accent hover:underline"
                >
                  {job.url}
                </a>
              ) : (
                <Mono>{job.url ?? ""}</Mono>
              )}
            </span>,
          ],
          job.exit !== null &&
            job.exit !== undefined && ["Exit", <bdi key="exit">{job.exit.text}</bdi>],
          Boolean(job.comment) && [
            "Comment",
            <bdi key="comment" className="wrap-anywhere">
              {job.comment}
            </bdi>,
          ],
          parameters.length > 0 && ["Parameters", <Pairs key="parameters" pairs={parameters} />],
          labels.length > 0 && ["Labels", <Pairs key="labels" pairs={labels} />],
          job.tags.length > 0 && [
            "Tags",
            <span key="tags" className="flex flex-wrap gap-1">
              {job.tags.map((tag) => (
                <Chip key={tag}>{tag}</Chip>
              ))}
            </span>,
          ],
        ]}
      />
    </Panel>
  );
}

function asked(asks: string): string {
  return /^[\d.]+$/.test(asks) ? `${asks} ${asks === "1" ? "GPU" : "GPUs"}` : asks;
}

function Pairs({ pairs }: { pairs: [string, string][] }) {
  return (
    <span className="flex flex-wrap gap-1">
      {pairs.map(([key, value]) => (
        <Chip key={key} name={key}>
          {value}
        </Chip>
      ))}
    </span>
  );
}
