import { type ReactNode, Suspense } from "react";
import { asApiError } from "@/api/error";
import { type Crumb, Cut, ErrorNote, ErrorState, Page, Tabs } from "@/design";
import { type Action, useActions } from "./keyboard";
import { useSticky } from "./sticky";

interface Query {
  data: unknown;
  error: unknown;
  failureReason: unknown;
  refetch: () => unknown;
}

/** The page of one job or run: its name, its state, what can be done, and its tabs. */
export function RecordPage<T extends string>({
  title,
  path,
  query,
  missing,
  badge,
  actions,
  command,
  note,
  tabsLabel,
  tabs,
  tab,
  onTab,
  scrollsItself,
  loading,
  children,
  drawer,
}: {
  title: string;
  path: readonly Crumb[];
  query: Query;
  /** What the page shows beside the error when there is no record. */
  missing: { title: string; actions: ReactNode; command: string };
  badge: ReactNode;
  actions: ReactNode;
  command: string;
  /** A remark about the whole record. */
  note?: ReactNode;
  tabsLabel: string;
  tabs: Readonly<Record<T, string>>;
  tab: T;
  onTab: (tab: T) => void;
  /** The tab has a table or a log that scrolls by itself. */
  scrollsItself: boolean;
  /** In place of the tab until the record is there. */
  loading: ReactNode;
  /** The tab, once the record is there. */
  children: ReactNode;
  drawer?: ReactNode;
}) {
  const error = useSticky(query);
  const known = query.data !== undefined;
  const retry = () => void query.refetch();
  if (error && !known)
    return (
      <Page title={missing.title} path={path} actions={missing.actions} command={missing.command}>
        <ErrorState error={error} {...(asApiError(error).status !== 404 && { onRetry: retry })} />
      </Page>
    );
  return (
    <Page
      title={title}
      path={path}
      heading={<Cut>{title}</Cut>}
      badge={badge}
      actions={actions}
      command={command}
      fill
    >
      {query.error !== null && known && (
        <div className="px-4 pb-2">
          <ErrorNote error={query.error} onRetry={retry} />
        </div>
      )}
      {note && <div className="px-4 pb-2">{note}</div>}
      <Tabs
        label={tabsLabel}
        tabs={(Object.keys(tabs) as T[]).map((value) => ({ value, label: tabs[value] }))}
        value={tab}
        onChange={onTab}
      >
        <div
          className={scrollsItself ? "flex h-full min-h-0 flex-col" : "h-full overflow-y-auto"}
          aria-busy={!known || undefined}
        >
          {known ? children : loading}
        </div>
      </Tabs>
      {drawer && <Suspense>{drawer}</Suspense>}
    </Page>
  );
}

/** The tabs of a record in Ctrl-K, some with a key. */
export function useTabActions<T extends string>(
  of: "job" | "run",
  tabs: Readonly<Record<T, string>>,
  keys: Partial<Record<T, string>>,
  go: (tab: T) => void,
  more: readonly Action[] = [],
) {
  useActions([
    ...(Object.keys(tabs) as T[]).map((tab) => ({
      id: `${of}-tab:${tab}`,
      group: `This ${of}`,
      label: tabs[tab],
      ...(keys[tab] && { keys: keys[tab] }),
      run: () => go(tab),
    })),
    ...more,
  ]);
}

/** Facts about the record in one line, beside its state. */
export function InLine({ children }: { children: readonly ReactNode[] }) {
  const shown = children.filter(Boolean);
  return (
    <span className="flex min-w-0 flex-wrap items-center gap-x-1.5 text-muted">
      {shown.map((one, i) => (
        <span key={i} className="contents">
          {i > 0 && (
            <span aria-hidden className="text-faint">
              ·
            </span>
          )}
          {one}
        </span>
      ))}
    </span>
  );
}
