import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Bell, ChevronDown, Search, Users } from "lucide-react";
import { helpPage } from "@/api/error";
import { alertsSeen, counters, type Live, useAlerts, useLive } from "@/api/live";
import { teamsQuery, useMe } from "@/api/session";
import { Button, Kbd, Menu, Popover, Time, Tooltip } from "@/design";
import { crumbs } from "@/design/Page";
import { cx } from "@/lib/cx";
import { count } from "@/lib/format";
import { useNow } from "@/lib/now";
import { useStore } from "@/lib/store";
import { Logo } from "./Logo";
import { openPalette } from "./palette-state";

export function TopBar() {
  return (
    <header className="flex h-(--topbar) shrink-0 items-center gap-1 border-line border-b bg-surface pr-2 pl-4 max-md:pl-3">
      <Breadcrumb />
      <div className="flex-1" />
      <TeamFilter />
      <button
        type="button"
        onClick={openPalette}
        className="mx-1 flex h-7 items-center gap-2 rounded-md border border-line-strong px-2 text-12 text-muted hover:bg-surface-2 hover:text-fg max-md:mx-0 max-md:h-9 max-md:border-transparent lg:w-52"
      >
        <Search size={14} aria-hidden />
        <span className="max-lg:sr-only">Search or run</span>
        <span className="flex-1" />
        <span className="max-lg:hidden" aria-hidden>
          <Kbd keys="mod+k" />
        </span>
      </button>
      <LiveIndicator />
      <Alerts />
    </header>
  );
}

function Breadcrumb() {
  const path = useStore(crumbs);
  return (
    <nav aria-label="Breadcrumb" className="flex min-w-0 items-center gap-2">
      <span className="md:hidden">
        <Logo />
      </span>
      <ol className="flex min-w-0 items-center gap-1.5">
        {path.map((c, i) => (
          <li
            key={i}
            className={cx("flex min-w-0 items-center gap-1.5", i === path.length - 1 && "shrink")}
          >
            {i > 0 && (
              <span aria-hidden className="text-faint">
                /
              </span>
            )}
            {c.to ? (
              <Link to={c.to} className="truncate text-muted hover:text-fg">
                {c.label}
              </Link>
            ) : (
              <bdi
                className={cx("truncate", i < path.length - 1 && "text-muted")}
                aria-current={i === path.length - 1 ? "page" : undefined}
              >
                {c.label}
              </bdi>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}

/** Narrows every page to a team. It stays in the address from page to page. */
function TeamFilter() {
  const me = useMe();
  const teams = useQuery(teamsQuery).data;
  const team = useSearch({ strict: false, select: (s: { team?: string }) => s.team });
  const navigate = useNavigate();
  const mine = me?.teams.map((t) => t.team) ?? [];
  const seen = me?.cluster_role ? (teams?.map((t) => t.name) ?? mine) : mine;
  if (seen.length < 2 && !team) return null;
  const pick = (to: string | undefined) =>
    void navigate({
      to: ".",
      search: (old: Record<string, unknown>) => ({ ...old, team: to }),
    } as never);
  const others = seen.filter((t) => !mine.includes(t)).sort();
  const item = (t: string) => ({ label: t, checked: t === team, onSelect: () => pick(t) });
  return (
    <Menu
      trigger={
        <button
          type="button"
          aria-label={team ? `Team: ${team}` : "All teams"}
          className={cx(
            "flex h-7 min-w-0 max-w-44 items-center gap-1.5 rounded-md px-2 text-12 hover:bg-surface-2 max-md:h-9",
            team ? "bg-accent-soft font-medium text-fg" : "text-muted",
          )}
        >
          <Users size={14} aria-hidden className="shrink-0" />
          <bdi className="truncate max-md:hidden">{team ?? "All teams"}</bdi>
          <ChevronDown size={12} aria-hidden className="shrink-0 max-md:hidden" />
        </button>
      }
      items={[
        { label: "All teams", checked: !team, onSelect: () => pick(undefined) },
        "-",
        ...(mine.length > 0 ? ["Mine", ...[...mine].sort().map(item)] : []),
        ...(others.length > 0 ? ["Others", ...others.map(item)] : []),
      ]}
    />
  );
}

const DOTS: Record<Live["state"], string> = {
  live: "bg-good",
  connecting: "bg-line-strong",
  paused: "bg-line-strong",
  reconnecting: "bg-warn",
  ended: "bg-bad",
};

function LiveIndicator() {
  const live = useLive();
  const now = useNow();
  const word =
    live.state === "reconnecting"
      ? `reconnecting ${Math.max(0, Math.ceil((live.at - now) / 1000))} s`
      : live.state;
  const about =
    live.state === "live"
      ? `This page follows what happens. ${count(counters.events)} events since it was opened.`
      : live.state === "ended"
        ? live.detail
        : live.state === "reconnecting"
          ? "The stream of events broke off. What was missed is sent when it is back."
          : live.state === "paused"
            ? "Paused while the page is hidden."
            : "Opening the stream of events.";
  return (
    <Tooltip text={about} side="bottom">
      <span
        role="status"
        tabIndex={0}
        className="flex h-7 items-center gap-1.5 rounded-md px-2 text-12 text-muted"
      >
        <span aria-hidden className={cx("size-1.5 rounded-full", DOTS[live.state])} />
        <span className={cx("tabular-nums", live.state === "live" && "max-md:sr-only")}>
          {word}
        </span>
      </span>
    </Tooltip>
  );
}

function Alerts() {
  const { list, unseen } = useAlerts();
  const label = unseen > 0 ? `Alerts, ${unseen} new` : "Alerts";
  return (
    <span className="relative">
      {unseen > 0 && (
        <span
          aria-hidden
          className="pointer-events-none absolute -top-0.5 -right-0.5 grid h-4 min-w-4 place-items-center rounded-full bg-bad px-1 font-semibold text-[11px] text-surface leading-none"
        >
          {unseen > 9 ? "9+" : unseen}
        </span>
      )}
      <Popover
        align="end"
        width={360}
        label="Alerts"
        onOpenChange={(o) => !o && alertsSeen()}
        trigger={
          <Button look="quiet" icon={Bell} iconOnly>
            {label}
          </Button>
        }
      >
        <h2 className="border-line border-b px-3 py-2 font-medium">Alerts</h2>
        {list.length === 0 ? (
          <p className="px-3 py-4 text-muted">
            None since this page was opened. Home shows what needs you.
          </p>
        ) : (
          <ul className="max-h-96 divide-y divide-line overflow-y-auto">
            {list.map((a) => (
              <li key={a.seq} className="px-3 py-2">
                <p className="wrap-anywhere">{a.text}</p>
                <p className="flex gap-2 text-12 text-muted">
                  <Time at={a.at} />
                  {a.team && <bdi>{a.team}</bdi>}
                  {a.code && (
                    <a href={helpPage(a.code)} className="text-accent hover:underline">
                      {a.code}
                    </a>
                  )}
                </p>
              </li>
            ))}
          </ul>
        )}
      </Popover>
    </span>
  );
}
