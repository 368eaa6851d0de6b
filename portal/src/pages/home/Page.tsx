import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useEffect, useMemo } from "react";
import { roleIn } from "@/api/rights";
import { teamsQuery, useMay, useMe } from "@/api/session";
import type { Me } from "@/api/types";
import { berth, Figure, Money, Page, Skeleton, Stat, Stats } from "@/design";
import { clock, count, gpus, NONE } from "@/lib/format";
import { useNow } from "@/lib/now";
import { useStored } from "@/lib/stored";
import { ClusterSection } from "./cluster";
import { idleOf, useBudgets, useBusy, useMine, useSpent } from "./data";
import { FirstTime } from "./first-time";
import { MyQueuePanel } from "./my-queue";
import { needsOf } from "./needs";
import { NeedsPanel } from "./needs-panel";
import { ComingFigure } from "./parts";
import { RunningPanel } from "./running";
import { TeamSection } from "./team";

const route = getRouteApi("/");

export default function HomePage() {
  const me = useMe();
  const { team } = route.useSearch();
  if (!me) return <Blank />;
  return <Home me={me} team={team} />;
}

function Blank() {
  return (
    <Page title="Home">
      <div
        data-skeleton
        role="status"
        aria-label="Loading"
        aria-busy="true"
        className="flex flex-col gap-4"
      >
        <Skeleton height={84} />
        <Skeleton height={160} />
      </div>
    </Page>
  );
}

function Home({ me, team }: { me: Me; team: string | undefined }) {
  const now = useNow(60_000);
  const mine = useMine(me.user, team);
  const busy = useBusy(mine.running);
  const budgets = useBudgets();
  const teams = useMemo(
    () => new Set(me.teams.filter((t) => !team || t.team === team).map((t) => t.team)),
    [me.teams, team],
  );
  const needs = useMemo(
    () =>
      needsOf({
        now,
        open: mine.jobs,
        failed: mine.failed.data?.jobs ?? [],
        idle: idleOf(mine.running, busy),
        budgets,
        teams,
      }),
    [now, mine.jobs, mine.failed.data, mine.running, busy, budgets, teams],
  );
  const led = useLed(me, team);
  const operates = useMay("QueuesRead").ok;
  const loading = mine.open.data === undefined && !mine.open.error;
  const nothing =
    !loading && !mine.open.error && mine.jobs.length === 0 && mine.failed.data?.jobs.length === 0;

  // What was there last time is expected again, so that nothing jumps when the answer comes.
  const [had, setHad] = useStored("home:mine", true);
  const known = !loading && !mine.open.error;
  useEffect(() => {
    if (known && had === nothing) setHad(!nothing);
  }, [known, had, nothing, setHad]);
  const works = led.length > 0 || operates;
  const steps = nothing && <FirstTime me={me} />;
  const others = (
    <>
      {operates && <ClusterSection />}
      {led.length > 0 && <TeamSection teams={led} all={operates && !team} />}
    </>
  );
  return (
    <Page
      title="Home"
      command={nothing && works ? "berth top" : berth("ps", { "--mine": true, "--team": team })}
    >
      <div className="flex flex-col gap-4">
        {!((nothing || (loading && !had)) && works) && (
          <MyFigures me={me} team={team} mine={mine} />
        )}
        {!works && steps}
        {(needs.length > 0 || (loading ? had || !works : !nothing)) && (
          <NeedsPanel
            needs={needs}
            loading={loading}
            error={mine.open.error}
            retry={() => void mine.open.refetch()}
          />
        )}
        {(loading ? had || !works : !nothing && !mine.open.error) && (
          <div className="grid gap-4 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
            <RunningPanel jobs={mine.running} busy={busy} loading={loading} user={me.user} />
            <MyQueuePanel jobs={mine.waiting} loading={loading} user={me.user} />
          </div>
        )}
        {others}
        {/* Those who keep a cluster or a team come for these first. */}
        {works && me.teams.length > 0 && steps}
      </div>
    </Page>
  );
}

/** Teams that one leads, and those below them. */
function useLed(me: Me, team: string | undefined): string[] {
  const teams = useQuery(teamsQuery).data;
  return useMemo(() => {
    const parents = new Map(
      (teams ?? []).flatMap((t) => (t.parent ? [[t.name, t.parent] as const] : [])),
    );
    const names = new Set([...(teams ?? []).map((t) => t.name), ...me.teams.map((t) => t.team)]);
    const cluster = me.cluster_role === "admin" || me.cluster_role === "operator";
    return [...names].filter((name) => {
      if (team && name !== team) return false;
      const role = roleIn(me, name, parents);
      return cluster || role === "team_lead" || role === "operator" || role === "admin";
    });
  }, [me, teams, team]);
}

function MyFigures({
  me,
  team,
  mine,
}: {
  me: Me;
  team: string | undefined;
  mine: ReturnType<typeof useMine>;
}) {
  const now = useNow(60_000);
  const spent = useSpent(me.user, team);
  const held = mine.running.reduce((n, j) => n + j.gpus_milli, 0);
  const rate = mine.running.reduce((n, j) => n + (j.price_micros_per_hour ?? 0), 0);
  const loading = mine.open.data === undefined;

  return (
    <Stats>
      <Stat label="My running jobs" note={loading ? NBSP : `${gpus(held)} GPUs`}>
        <Link to="/jobs" search={{ user: me.user, state: ["running"] }} className={LINK}>
          {mine.open.error ? NONE : loading ? <ComingFigure /> : count(mine.running.length)}
        </Link>
      </Stat>
      <Stat
        label="My waiting jobs"
        note={loading ? NBSP : mine.waiting.length === 0 ? "none" : next(mine.waiting[0]?.eta, now)}
      >
        <Link to="/jobs" search={{ user: me.user, state: ["pending"] }} className={LINK}>
          {mine.open.error ? NONE : loading ? <ComingFigure /> : count(mine.waiting.length)}
        </Link>
      </Stat>
      <Stat
        label="My spend today"
        note={
          rate > 0 ? (
            <>
              <Money micros={rate} rate /> now
            </>
          ) : loading ? (
            NBSP
          ) : (
            "nothing runs now"
          )
        }
      >
        <Link to="/costs" search={{ by: "job", user: me.user, period: "7d" }} className={LINK}>
          {spent.day ? <Money micros={spent.day.micros} /> : spent.error ? NONE : <ComingFigure />}
        </Link>
      </Stat>
      <Stat
        label="My spend this week"
        note={
          spent.week ? (
            <Figure value={gpus(Math.round(spent.week.gpu_ms / 36_000) * 10)} unit="GPU-hours" />
          ) : (
            " "
          )
        }
      >
        <Link to="/costs" search={{ by: "job", user: me.user, period: "7d" }} className={LINK}>
          {spent.week ? (
            <Money micros={spent.week.micros} />
          ) : spent.error ? (
            NONE
          ) : (
            <ComingFigure />
          )}
        </Link>
      </Stat>
    </Stats>
  );
}

const NBSP = "\u00a0";
const LINK = "underline-offset-4 hover:underline";
function next(eta: string | null | undefined, now: number): string {
  return eta ? `next about ${clock(eta, now)}` : "none in sight";
}
