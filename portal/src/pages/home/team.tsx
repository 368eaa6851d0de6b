import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { gpusQuery, someJobsQuery } from "@/api/queries";
import type { Budget } from "@/api/types";
import { Bar, Cut, ErrorNote, Money, Panel, Skeleton, Span, TextLink } from "@/design";
import { clock, money, percent, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { idleQuery } from "../costs/routes";
import { Sentence } from "../new-job/sentence";
import { useBudgets, useHour, useRunsOut } from "./data";
import { blockedOf, partOf, today } from "./needs";
import { Group, Nothing, RowsSkeleton } from "./parts";
import { heldIdle } from "./supply";

const MOST = 6;

/** For those who lead: who is blocked, how budgets burn, what is spent on nothing. */
export function TeamSection({ teams, all }: { teams: readonly string[]; all: boolean }) {
  const title = all || teams.length > 3 ? "Teams" : `Team ${teams.join(", ")}`;
  return (
    <Group title={title}>
      <div className="grid gap-4 lg:grid-cols-2 xl:grid-cols-3">
        <BlockedPanel teams={teams} />
        <BudgetsPanel teams={teams} />
        <IdlePanel teams={teams} all={all} />
      </div>
    </Group>
  );
}

function BlockedPanel({ teams }: { teams: readonly string[] }) {
  const one = teams.length === 1 ? teams[0] : undefined;
  const query = useQuery(someJobsQuery({ state: "pending", ...(one && { team: one }) }, 500));
  const people = useMemo(() => {
    const set = new Set(teams);
    return blockedOf((query.data?.jobs ?? []).filter((j) => set.has(j.team)));
  }, [query.data, teams]);
  return (
    <Panel
      title="People who wait"
      flush
      actions={
        <TextLink to="/queue" search={one ? { queue: one } : {}} className="text-12">
          Queue
        </TextLink>
      }
    >
      {query.error ? (
        <div className="p-3">
          <ErrorNote error={query.error} onRetry={() => void query.refetch()} />
        </div>
      ) : query.data === undefined ? (
        <RowsSkeleton label="people who wait" />
      ) : people.length === 0 ? (
        <Nothing>No job waits.</Nothing>
      ) : (
        <ul className="divide-y divide-line">
          {people.slice(0, MOST).map((p) => (
            <li
              key={p.user}
              className="grid grid-cols-[minmax(0,1fr)_auto] items-baseline gap-x-3 px-3 py-1.5"
            >
              <TextLink
                to="/jobs"
                search={{ user: p.user, state: ["pending"] }}
                className="min-w-0 truncate"
              >
                <bdi>{p.user}</bdi>
              </TextLink>
              <span className="text-right">
                <Span from={new Date(p.since).toISOString()} />
              </span>
              <span className="col-span-2 truncate text-12 text-muted">
                {plural(p.jobs.length, "job")}
                {p.jobs[0]?.reason && (
                  <>
                    {" · "}
                    <Sentence text={p.jobs[0].reason} />
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function BudgetsPanel({ teams }: { teams: readonly string[] }) {
  const budgets = useBudgets();
  const mine = budgets.filter((b) => teams.includes(b.queue)).sort((a, b) => partOf(b) - partOf(a));
  return (
    <Panel
      title="Budgets"
      flush
      actions={
        <TextLink to="/costs" className="text-12">
          Costs
        </TextLink>
      }
    >
      {mine.length === 0 ? (
        <Nothing>No budget is set: nothing limits what is spent.</Nothing>
      ) : (
        <ul className="divide-y divide-line">
          {mine.slice(0, MOST).map((b) => (
            <BudgetRow key={b.queue} budget={b} />
          ))}
        </ul>
      )}
    </Panel>
  );
}

const AT_LIMIT: Record<string, string> = {
  notify: "; its people were notified",
  block: "; nothing new starts",
  lower_priority: "; its jobs go after all others",
  pause: "; its jobs are saved and paused",
};

function BudgetRow({ budget: b }: { budget: Budget }) {
  const now = useNow(60_000);
  const out = useRunsOut(b.queue);
  const part = partOf(b);
  const forecast = Math.max(0, (b.forecast_micros ?? b.spent_micros) - b.spent_micros);
  const tone = part >= 100 ? "bad" : part >= 80 || out ? "warn" : "accent";
  return (
    <li className="flex flex-col gap-1 px-3 py-2">
      <div className="flex items-baseline gap-3">
        <Cut className="flex-1">{b.queue}</Cut>
        <span className="whitespace-nowrap tabular-nums">
          <Money micros={b.spent_micros} short />{" "}
          <span className="text-muted">of {money(b.limit_micros, { short: true })}</span>
        </span>
      </div>
      <Bar
        whole={Math.max(b.limit_micros, b.spent_micros + forecast)}
        parts={[
          { value: b.spent_micros, label: `${money(b.spent_micros)} spent`, tone },
          {
            value: forecast,
            label: `${money(forecast)} more by the end of the ${b.per}, at this rate`,
            tone,
            striped: true,
          },
        ]}
        mark={{ at: b.limit_micros, label: `Limit ${money(b.limit_micros)}` }}
        label={`${percent(part)} of the budget spent`}
      />
      <span className="text-12 text-muted">
        {percent(part)} spent
        {part >= 100
          ? AT_LIMIT[b.action]
          : out
            ? `; runs out about ${clock(out, now)}`
            : out === null && b.period_to
              ? `; lasts until ${clock(b.period_to, now)}`
              : ""}
      </span>
    </li>
  );
}

function IdlePanel({ teams, all }: { teams: readonly string[]; all: boolean }) {
  const hour = useHour();
  const from = new Date(today(hour)).toISOString();
  const gpus = useQuery(gpusQuery).data;
  const team = !all && teams.length === 1 ? teams[0] : undefined;
  const idle = useQuery({ ...idleQuery({ from, team }), retry: false }).data;
  const held = useMemo(() => heldIdle(gpus ?? [], new Set(teams)), [gpus, teams]);
  const of = (cause: string) => idle?.causes.find((one) => one.cause === cause)?.amount_micros;
  const whose =
    idle === undefined || idle.teams.length === 0
      ? "all teams"
      : idle.teams.length > 3
        ? plural(idle.teams.length, "team")
        : idle.teams.join(", ");
  const rows: [string, number | undefined][] = [
    ["Held but unused", of("held_idle")],
    ["Lost with failed jobs", of("lost_failed")],
    ["GPUs that no job held", of("unallocated")],
  ];
  return (
    <Panel title="Idle and lost" flush>
      <ul className="divide-y divide-line">
        {held.slice(0, 4).map((h) => (
          <li
            key={h.job}
            className="grid grid-cols-[minmax(0,1fr)_auto] items-baseline gap-x-3 px-3 py-1.5"
          >
            <TextLink
              to="/jobs/$job"
              params={{ job: h.job }}
              search={{ tab: "metrics" }}
              className="min-w-0 truncate"
            >
              <bdi>{h.name}</bdi>
            </TextLink>
            <span className="text-warn">
              <Money micros={h.rate} rate />
            </span>
            <span className="col-span-2 truncate text-12 text-muted">
              {plural(h.gpus, "GPU")} of <bdi>{h.team}</bdi> held and idle now
            </span>
          </li>
        ))}
        {gpus === undefined ? (
          <li data-skeleton aria-busy="true" className="px-3 py-3">
            <Skeleton width="60%" />
          </li>
        ) : (
          held.length === 0 && (
            <li className="px-3 py-2 text-muted">No GPU is held and idle now.</li>
          )
        )}
        {rows.map(
          ([label, micros]) =>
            micros !== undefined && (
              <li key={label} className="flex justify-between gap-3 px-3 py-1.5">
                <span className="text-muted">
                  {label}, {whose}, today
                </span>
                <Money micros={micros} />
              </li>
            ),
        )}
      </ul>
    </Panel>
  );
}
