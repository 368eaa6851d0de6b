import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { costQuery, gpusQuery, nodesQuery, someJobsQuery } from "@/api/queries";
import { Money, Span, Stat, Stats } from "@/design";
import { count, gpus as gpuText, NONE } from "@/lib/format";
import { useHour } from "./data";
import { today } from "./needs";
import { ComingFigure } from "./parts";
import { byModel } from "./supply";

const MOST_WAITING = 500;
export const LONGEST = someJobsQuery({ state: "pending", sort: "submitted" }, MOST_WAITING);

/** The cluster in four numbers. */
export function ClusterFigures() {
  const hour = useHour();
  const { data: gpus, error: noGpus } = useQuery(gpusQuery);
  const { data: nodes, error: noNodes } = useQuery(nodesQuery);
  const { data: longest, error: noJobs } = useQuery(LONGEST);
  const waiting = longest?.jobs;
  const from = new Date(today(hour)).toISOString();
  const cost = useQuery({ ...costQuery({ by: "team", from }), retry: false });
  const models = byModel(gpus ?? []);
  const sum = (of: (m: (typeof models)[number]) => number) => models.reduce((n, m) => n + of(m), 0);
  const ready = nodes?.filter((n) => n.state === "ready").length;
  const oldest = waiting?.map((j) => j.submitted).sort()[0];
  return (
    <Stats>
      <Stat label="Free GPUs" note={gpus ? `of ${count(sum((m) => m.total))}` : "\u00a0"}>
        <Link
          to="/cluster"
          search={{ figure: "free" }}
          className="underline-offset-4 hover:underline"
        >
          {gpus ? gpuText(sum((m) => m.free) * 1000) : noGpus ? NONE : <ComingFigure />}
        </Link>
      </Stat>
      <Stat
        label="Nodes ready"
        note={nodes ? `of ${count(nodes.length)}` : "\u00a0"}
        {...(nodes && ready !== nodes.length && { tone: "warn" as const })}
      >
        <Link
          to="/cluster"
          search={{ view: "nodes" }}
          className="underline-offset-4 hover:underline"
        >
          {ready !== undefined ? count(ready) : noNodes ? NONE : <ComingFigure />}
        </Link>
      </Stat>
      <Stat
        label="Jobs that wait"
        note={
          oldest ? (
            <>
              the longest for <Span from={oldest} />
            </>
          ) : waiting ? (
            "none"
          ) : (
            "\u00a0"
          )
        }
      >
        <Link to="/queue" className="underline-offset-4 hover:underline">
          {waiting ? (
            `${count(waiting.length)}${waiting.length === MOST_WAITING ? "+" : ""}`
          ) : noJobs ? (
            NONE
          ) : (
            <ComingFigure />
          )}
        </Link>
      </Stat>
      <Stat
        label="Spent today"
        note={
          cost.data ? (
            <>
              and <Money micros={cost.data.idle_micros} /> idle
            </>
          ) : (
            "\u00a0"
          )
        }
      >
        <Link
          to="/costs"
          search={{ by: "team", period: "7d" }}
          className="underline-offset-4 hover:underline"
        >
          {cost.data ? (
            <Money micros={cost.data.total_micros} />
          ) : cost.error ? (
            NONE
          ) : (
            <ComingFigure />
          )}
        </Link>
      </Stat>
    </Stats>
  );
}
