import { type ReactNode, useEffect } from "react";
import { store } from "@/lib/store";
import { CommandBar } from "./CommandBar";

export interface Crumb {
  label: string;
  /** Where it leads; the last one, where one is, leads nowhere. */
  to?: string;
}

/** What the top bar shows; the page that is open says it. */
export const crumbs = store<readonly Crumb[]>([]);

/**
 * A page: its name, what can be done, what is seen, and the command for it. `fill` is for pages whose
 * content brings its own scrolling, such as a table; others scroll as a whole.
 */
export function Page({
  title,
  path,
  heading,
  subtitle,
  badge,
  actions,
  toolbar,
  command,
  fill,
  children,
}: {
  /** Also the title of the browser's tab. */
  title: string;
  /** Pages above this one. */
  path?: readonly Crumb[];
  /** Instead of the title, in the page itself. */
  heading?: ReactNode;
  subtitle?: ReactNode;
  badge?: ReactNode;
  /** Buttons at the right; at most one of them primary, and that one last. */
  actions?: ReactNode;
  /** Filters, below the heading. */
  toolbar?: ReactNode;
  command?: string;
  fill?: boolean;
  children: ReactNode;
}) {
  const above = path?.map((c) => `${c.label}\n${c.to ?? ""}`).join("\t") ?? "";
  useEffect(() => {
    document.title = `${title} · Berth`;
    const list = above
      ? above.split("\t").map((c) => {
          const [label, to] = c.split("\n") as [string, string];
          return to ? { label, to } : { label };
        })
      : [];
    crumbs.set([...list, { label: title }]);
  }, [title, above]);

  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className={fill ? "flex min-h-0 flex-1 flex-col" : "min-h-0 flex-1 overflow-y-auto"}>
        <PageHeader
          title={heading ?? title}
          {...(subtitle !== undefined && { subtitle })}
          {...(badge !== undefined && { badge })}
          {...(actions !== undefined && { actions })}
        />
        {toolbar && <div className="flex flex-wrap items-center gap-2 px-4 pb-3">{toolbar}</div>}
        {fill ? children : <div className="px-4 pb-6">{children}</div>}
      </div>
      {command && <CommandBar command={command} />}
    </div>
  );
}

export function PageHeader({
  title,
  subtitle,
  badge,
  actions,
}: {
  title: ReactNode;
  subtitle?: ReactNode;
  badge?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <header className="flex shrink-0 flex-wrap items-center gap-x-3 gap-y-2 px-4 pt-3.5 pb-3">
      <h1 tabIndex={-1} className="min-w-0 truncate font-semibold text-16 outline-none">
        {title}
      </h1>
      {badge}
      {subtitle && <div className="min-w-0 truncate text-muted">{subtitle}</div>}
      {actions && (
        // On a phone several buttons stand below the title, and there at its left.
        <div className="ml-auto flex flex-wrap items-center gap-2 max-sm:has-[>button:nth-of-type(2)]:ml-0">
          {actions}
        </div>
      )}
    </header>
  );
}
