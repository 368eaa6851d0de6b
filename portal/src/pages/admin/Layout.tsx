import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useMayFor } from "@/api/session";
import { Page } from "@/design";
import { cx } from "@/lib/cx";
import { intoView } from "@/lib/into-view";
import { SECTIONS, type SectionId } from "./sections";

/** The frame of each section: the list of sections beside it, above it where it is narrow. */
export function Section({
  id,
  actions,
  command,
  fill,
  children,
}: {
  id: SectionId;
  actions?: ReactNode;
  command: string;
  /** The content brings its own scrolling. */
  fill?: boolean;
  children: ReactNode;
}) {
  const may = useMayFor();
  const section = SECTIONS.find((s) => s.id === id) ?? SECTIONS[0];
  return (
    <Page
      title={section.label}
      path={[{ label: "Admin", to: "/admin" }]}
      command={command}
      fill
      {...(actions !== undefined && { actions })}
    >
      <div className="flex min-h-0 flex-1 flex-col border-line border-t md:flex-row">
        <nav
          aria-label="Administration"
          className="flex shrink-0 gap-0.5 overflow-x-auto border-line p-2 max-md:border-b md:w-44 md:flex-col md:border-r"
        >
          {SECTIONS.map((s) => {
            const allowed = may(s.permission).ok;
            if (!allowed && s.id !== id) return null;
            return (
              <Link
                key={s.id}
                to="/admin"
                search={{ tab: s.id }}
                aria-current={s.id === id ? "page" : undefined}
                ref={s.id === id ? intoView : undefined}
                className={cx(
                  "whitespace-nowrap rounded-md px-2 py-1",
                  s.id === id
                    ? "bg-accent-soft font-medium text-fg"
                    : "text-muted hover:bg-surface-2 hover:text-fg",
                )}
              >
                {s.label}
              </Link>
            );
          })}
        </nav>
        <div
          className={cx(
            "min-h-0 min-w-0 flex-1",
            fill ? "flex flex-col has-data-table-bar:pt-3" : "overflow-y-auto p-4 *:max-w-300",
          )}
        >
          {children}
        </div>
      </div>
    </Page>
  );
}
