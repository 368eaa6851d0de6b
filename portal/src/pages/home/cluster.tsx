import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { helpPage } from "@/api/error";
import { useAlerts } from "@/api/live";
import { gpusQuery, nodesQuery } from "@/api/queries";
import { Bar, Cut, ErrorNote, Panel, Span, StateBadge, TextLink, Time } from "@/design";
import { count, gpus as gpuText, plural } from "@/lib/format";
import { Sentence } from "../new-job/sentence";
import { ClusterFigures, LONGEST } from "./cluster-figures";
import { Group, JobName, Nothing, RowsSkeleton } from "./parts";
import { arrayOf, byModel, grouped, troubleOf } from "./supply";

const MOST = 6;

/** For those who keep the cluster running: what is free, what is broken, who waits longest. */
export function ClusterSection() {
  return (
    <Group title="Cluster">
      <ClusterFigures />
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-4">
          <FreePanel />
          <LongestPanel />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <TroublePanel />
          <AlertsPanel />
        </div>
      </div>
    </Group>
  );
}

function FreePanel() {
  const query = useQuery(gpusQuery);
  const models = useMemo(() => byModel(query.data ?? []), [query.data]);
  return (
    <Panel
      title="Free GPUs"
      flush
      actions={
        <TextLink to="/cluster" className="text-12">
          Cluster
        </TextLink>
      }
    >
      {query.error && !query.data ? (
        <div className="p-3">
          <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      ) : query.data === undefined ? (
        <RowsSkeleton label="GPUs" />
      ) : models.length === 0 ? (
        <Nothing>No node has GPUs.</Nothing>
      ) : (
        <ul className="divide-y divide-line">
          {models.slice(0, MOST).map((m) => (
            <li
              key={m.model}
              className="grid grid-cols-[minmax(72px,1fr)_minmax(0,2fr)_auto] items-center gap-x-3 px-3 py-1.5"
            >
              <Cut>{m.model}</Cut>
              <Bar
                whole={m.total}
                label={`${gpuText(m.free * 1000)} of ${count(m.total)} free`}
                parts={[
                  {
                    value: m.total - m.free - m.broken,
                    label: `${gpuText((m.total - m.free - m.broken) * 1000)} in use`,
                  },
                  {
                    value: m.broken,
                    label: `${count(m.broken)} out of order`,
                    tone: "bad",
                    striped: true,
                  },
                ]}
              />
              <span className="whitespace-nowrap text-right tabular-nums">
                <TextLink to="/cluster" search={{ figure: "free", q: m.model }}>
                  {gpuText(m.free * 1000)}
                </TextLink>
                <span className="text-muted"> of {count(m.total)} free</span>
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function TroublePanel() {
  const nodes = useQuery(nodesQuery);
  const gpus = useQuery(gpusQuery);
  const all = useMemo(() => troubleOf(nodes.data ?? [], gpus.data ?? []), [nodes.data, gpus.data]);
  return (
    <Panel
      title={
        all.length > 0
          ? `Nodes and GPUs in trouble (${count(all.length)})`
          : "Nodes and GPUs in trouble"
      }
      flush
    >
      {nodes.error && !nodes.data ? (
        <div className="p-3">
          <ErrorNote error={nodes.error} onRetry={() => void nodes.refetch()} />
        </div>
      ) : nodes.data === undefined ? (
        <RowsSkeleton label="nodes" />
      ) : all.length === 0 ? (
        <Nothing>
          {nodes.data.length === 0
            ? "There are no nodes."
            : nodes.data.length === 1
              ? "None: the one node is ready."
              : `None: all ${count(nodes.data.length)} nodes are ready.`}
        </Nothing>
      ) : (
        <ul className="divide-y divide-line">
          {all.slice(0, MOST).map((t) => (
            <li
              key={`${t.node} ${t.gpu}`}
              className="flex min-w-0 items-baseline gap-3 px-3 py-1.5"
            >
              <TextLink
                to="/cluster"
                search={{ view: "nodes", open: t.node }}
                className="max-w-44 shrink-0 truncate"
              >
                <bdi>{t.node}</bdi>
                {t.gpu !== undefined && ` GPU ${t.gpu}`}
              </TextLink>
              <StateBadge state={t.state} />
              <span
                className="min-w-0 flex-1 truncate text-right text-12 text-muted"
                title={t.text}
              >
                {t.text}
              </span>
            </li>
          ))}
          {all.length > MOST && (
            <li className="px-3 py-1.5 text-12">
              <TextLink to="/cluster" search={{ view: "nodes" }}>
                {`All ${count(all.length)}`}
              </TextLink>
            </li>
          )}
        </ul>
      )}
    </Panel>
  );
}

function LongestPanel() {
  const query = useQuery(LONGEST);
  const jobs = useMemo(
    () =>
      grouped([...(query.data?.jobs ?? [])].sort((a, b) => a.submitted.localeCompare(b.submitted))),
    [query.data],
  );
  return (
    <Panel
      title="Who waits longest"
      flush
      actions={
        <TextLink to="/queue" className="text-12">
          Queue
        </TextLink>
      }
    >
      {query.error && !query.data ? (
        <div className="p-3">
          <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      ) : query.data === undefined ? (
        <RowsSkeleton label="waiting jobs" />
      ) : jobs.length === 0 ? (
        <Nothing>No job waits.</Nothing>
      ) : (
        <ul className="divide-y divide-line">
          {jobs.slice(0, MOST).map(({ job: j, elements }) => (
            <li
              key={j.id}
              className="grid grid-cols-[minmax(0,1fr)_auto] items-baseline gap-x-3 px-3 py-1.5"
            >
              <JobName id={elements > 1 ? arrayOf(j.id) : j.id} name={j.name} />
              <Span from={j.submitted} />
              <span
                className="col-span-2 truncate text-12 text-muted"
                title={j.reason ?? undefined}
              >
                <bdi>{j.team}</bdi> · <bdi>{j.user}</bdi> ·{" "}
                {elements > 1 && `${plural(elements, "element")} · `}
                {j.reason && <Sentence text={j.reason} />}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function AlertsPanel() {
  const { list } = useAlerts();
  return (
    <Panel title="Alerts" flush>
      {list.length === 0 ? (
        <Nothing>None since this page was opened.</Nothing>
      ) : (
        <ul className="divide-y divide-line">
          {list.slice(0, MOST).map((a) => (
            <li key={a.seq} className="flex min-w-0 items-baseline gap-3 px-3 py-1.5">
              <span className="min-w-0 flex-1 wrap-anywhere">{a.text}</span>
              {a.code && (
                <a href={helpPage(a.code)} className="text-12 text-accent hover:underline">
                  {a.code}
                </a>
              )}
              <span className="text-12 text-muted">
                <Time at={a.at} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}
