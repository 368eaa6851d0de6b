import { Link, useLocation } from "@tanstack/react-router";
import { Ellipsis, PanelLeft, Plus } from "lucide-react";
import { useMay } from "@/api/session";
import { Button, Kbd, LinkButton, Menu, type MenuItem, Tooltip } from "@/design";
import { cx } from "@/lib/cx";
import { AccountMenu, useAccountItems } from "./Account";
import { Logo } from "./Logo";
import { isAt, NAV } from "./nav";
import { useGo } from "./routes";

export function Rail({ open, onToggle }: { open: boolean; onToggle: () => void }) {
  const path = useLocation({ select: (l) => l.pathname });
  const submit = useMay("JobsSubmit");
  return (
    <nav
      aria-label="Pages"
      className="flex shrink-0 flex-col gap-0.5 border-line border-r bg-surface px-2 pb-2 max-md:hidden"
      style={{ width: open ? "var(--rail-open)" : "var(--rail)" }}
    >
      <div className="mb-1 flex h-(--topbar) items-center gap-2 pl-2.5">
        <Logo />
        {open && <span className="font-semibold text-14">Berth</span>}
      </div>
      {submit.ok && (
        <LinkButton
          to="/new"
          look="primary"
          icon={Plus}
          iconOnly={!open}
          keys="n"
          className="mb-2 h-8! w-full"
        >
          New job
        </LinkButton>
      )}
      {NAV.map(({ to, label, icon: Icon, keys }) => {
        const here = isAt(to, path);
        const link = (
          <Link
            key={to}
            to={to}
            aria-current={here ? "page" : undefined}
            aria-label={open ? undefined : label}
            className={cx(
              "flex h-8 items-center gap-2.5 rounded-md px-3",
              here
                ? "bg-accent-soft font-medium text-fg"
                : "text-muted hover:bg-surface-2 hover:text-fg",
            )}
          >
            <Icon
              size={16}
              strokeWidth={1.75}
              aria-hidden
              className={cx("shrink-0", here && "text-accent")}
            />
            {open && label}
          </Link>
        );
        return open ? (
          link
        ) : (
          <Tooltip
            key={to}
            side="right"
            text={
              <span className="flex items-center gap-2">
                {label} <Kbd keys={keys} />
              </span>
            }
          >
            {link}
          </Tooltip>
        );
      })}
      <div className="flex-1" />
      <AccountMenu open={open} />
      <Button
        look="quiet"
        icon={PanelLeft}
        iconOnly={!open}
        aria-expanded={open}
        onClick={onToggle}
        className={open ? "h-8! justify-start! gap-2.5! px-3!" : "h-8! w-full"}
      >
        {open ? "Collapse" : "Expand"}
      </Button>
    </nav>
  );
}

/** The same at 390 px: a bar at the bottom, and the rest behind "More". */
export function BottomBar() {
  const path = useLocation({ select: (l) => l.pathname });
  const submit = useMay("JobsSubmit");
  const account = useAccountItems();
  const go = useGo();
  const first = NAV.slice(0, 3);
  const rest = NAV.slice(3);
  const tab =
    "flex h-14 min-w-0 flex-1 flex-col items-center justify-center gap-0.5 text-12 outline-offset-[-3px]";
  const more: MenuItem[] = rest.map((r) => ({
    label: r.label,
    icon: r.icon,
    onSelect: () => go(r.to),
    checked: isAt(r.to, path),
  }));
  return (
    <nav
      aria-label="Pages"
      className="flex shrink-0 border-line border-t bg-surface pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {first.map(({ to, label, icon: Icon }) => {
        const here = isAt(to, path);
        return (
          <Link
            key={to}
            to={to}
            aria-current={here ? "page" : undefined}
            className={cx(tab, here ? "font-medium text-accent" : "text-muted")}
          >
            <Icon size={18} strokeWidth={1.75} aria-hidden />
            {label}
          </Link>
        );
      })}
      {submit.ok && (
        <Link
          to="/new"
          aria-current={path === "/new" ? "page" : undefined}
          className={cx(tab, path === "/new" ? "font-medium text-accent" : "text-muted")}
        >
          <Plus size={18} strokeWidth={1.75} aria-hidden />
          New job
        </Link>
      )}
      <Menu
        align="end"
        trigger={
          <button
            type="button"
            className={cx(
              tab,
              rest.some((r) => isAt(r.to, path)) ? "font-medium text-accent" : "text-muted",
            )}
          >
            <Ellipsis size={18} strokeWidth={1.75} aria-hidden />
            More
          </button>
        }
        items={[...more, "-", ...account]}
      />
    </nav>
  );
}
