import { Keyboard, KeyRound, LogOut, Monitor, Moon, Sun } from "lucide-react";
import { asApiError } from "@/api/error";
import { ROLE_WORDS } from "@/api/rights";
import { useMe, useSession, useSignOut } from "@/api/session";
import { Menu, type MenuItem, Time, toast } from "@/design";
import { cx } from "@/lib/cx";
import { useGo } from "./routes";
import { openShortcuts } from "./Shortcuts";
import { setTheme, useTheme } from "./theme";

export function useAccountItems(): (MenuItem | string)[] {
  const theme = useTheme();
  const signOut = useSignOut();
  const go = useGo();
  const choice = (value: typeof theme, label: string, icon: MenuItem["icon"]): MenuItem => ({
    label,
    ...(icon && { icon }),
    checked: theme === value,
    onSelect: () => setTheme(value),
  });
  return [
    choice("light", "Light", Sun),
    choice("dark", "Dark", Moon),
    choice("system", "As the system", Monitor),
    "-",
    { label: "Access tokens", icon: KeyRound, onSelect: () => go("/admin", { tab: "tokens" }) },
    { label: "Keyboard shortcuts", icon: Keyboard, onSelect: openShortcuts },
    {
      label: "Sign out",
      icon: LogOut,
      onSelect: () =>
        void signOut().catch((e) =>
          toast(`Not signed out: ${asApiError(e).message}`, { tone: "bad" }),
        ),
    },
  ];
}

export function AccountMenu({ open }: { open: boolean }) {
  const me = useMe();
  const session = useSession().data;
  const items = useAccountItems();
  const user = me?.user ?? "";
  const roles = [
    ...(me?.cluster_role ? [`${ROLE_WORDS[me.cluster_role]} of the cluster`] : []),
    ...(me?.teams.map((t) => `${ROLE_WORDS[t.role]} in ${t.team}`) ?? []),
  ];
  return (
    <Menu
      align="start"
      trigger={
        <button
          type="button"
          aria-label={`Account of ${user}`}
          className={cx(
            "flex h-8 w-full items-center gap-2.5 rounded-md text-muted hover:bg-surface-2 hover:text-fg",
            open ? "px-2.5" : "justify-center",
          )}
        >
          <span
            aria-hidden
            data-letter={user.slice(0, 1)}
            className="grid size-5 shrink-0 place-items-center rounded-full bg-accent-soft font-semibold text-[11px] text-accent uppercase before:content-[attr(data-letter)]"
          />
          {open && <bdi className="min-w-0 truncate">{user}</bdi>}
        </button>
      }
      header={
        <div className="border-line border-b px-2 pt-1 pb-2">
          <bdi className="block truncate font-medium">{user}</bdi>
          <div className="text-12 text-muted">{roles.slice(0, 4).join(", ") || "no role yet"}</div>
          {session?.expires_at && (
            <div className="text-12 text-faint">
              Session ends <Time at={session.expires_at} />
            </div>
          )}
        </div>
      }
      items={items}
    />
  );
}
