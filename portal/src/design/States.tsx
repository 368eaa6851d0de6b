import { CircleAlert, RotateCw } from "lucide-react";
import { createContext, type ReactNode, useState } from "react";
import { type ApiError, asApiError } from "@/api/error";
import { cx } from "@/lib/cx";
import { Button } from "./Button";
import { CommandLine } from "./CommandBar";

/** A grey place of the final size, for what is on its way. */
export function Skeleton({
  width = "100%",
  height = 12,
  className,
}: {
  width?: number | string;
  height?: number;
  className?: string;
}) {
  return (
    <span
      aria-hidden
      data-skeleton
      className={cx(
        "block animate-[pulse_1.6s_ease-in-out_infinite] rounded-sm bg-surface-2",
        className,
      )}
      style={{ width, height }}
    />
  );
}

/** What would be here, and the command that makes the first one. */
export function EmptyState({
  title,
  children,
  command,
  action,
}: {
  title: string;
  children?: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  return (
    <div className="mx-auto flex max-w-110 flex-col items-center gap-2 px-4 py-12 text-center">
      <p className="font-medium text-14">{title}</p>
      {children && <div className="text-muted">{children}</div>}
      {command && (
        <div className="mt-2 w-full rounded-md border border-line bg-surface">
          <CommandLine command={command} />
        </div>
      )}
      {action && <div className="mt-2 flex gap-2">{action}</div>}
    </div>
  );
}

/** An error where its answer would have been, in the words of the API, with its code. */
export function ErrorState({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const e = asApiError(error);
  return (
    <div role="alert" className="mx-auto flex max-w-130 flex-col items-start gap-1 px-4 py-12">
      <p className="flex items-center gap-2 font-medium text-14">
        <CircleAlert size={16} className="shrink-0 text-bad" aria-hidden />
        {e.title}
        <Code error={e} />
      </p>
      <p className="text-muted wrap-anywhere">{e.message}</p>
      {e.next && <p className="text-muted wrap-anywhere">{e.next}</p>}
      <Fields error={e} />
      {e.instance && <p className="text-12 text-faint wrap-anywhere">Request {e.instance}</p>}
      {onRetry && (
        <Button icon={RotateCw} onClick={onRetry} className="mt-2">
          Try again
        </Button>
      )}
    </div>
  );
}

/** The same in one or two lines: in a form, a panel, a dialog. */
export function ErrorNote({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const e = asApiError(error);
  return (
    <div role="alert" className="flex items-start gap-2 rounded-md bg-failed-soft px-3 py-2">
      <CircleAlert size={14} className="mt-[3px] shrink-0 text-bad" aria-hidden />
      <div className="min-w-0 flex-1 wrap-anywhere">
        <span>{e.message}</span> <Code error={e} />
        {e.next && <div className="text-muted">{e.next}</div>}
        <Fields error={e} />
      </div>
      {onRetry && (
        <Button size="sm" icon={RotateCw} onClick={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

function Code({ error }: { error: ApiError }) {
  if (!error.code || !error.page) return null;
  return (
    <a href={error.page} className="font-normal text-12 text-accent hover:underline">
      {error.code}
    </a>
  );
}

function Fields({ error }: { error: ApiError }) {
  if (error.fields.length === 0) return null;
  return (
    <ul className="mt-1 list-disc pl-4 text-12">
      {error.fields.slice(0, 20).map((f, i) => (
        <li key={i}>
          <code>{f.path}</code>
          {f.line ? ` line ${f.line}` : ""}: {f.message}
        </li>
      ))}
    </ul>
  );
}

/** A remark within a page: what is not available, what to know. */
export function Note({ tone = "info", children }: { tone?: "info" | "warn"; children: ReactNode }) {
  return (
    <div
      className={cx(
        "rounded-md px-3 py-2 wrap-anywhere",
        tone === "warn" ? "bg-waiting-soft text-fg" : "bg-surface-2 text-muted",
      )}
    >
      {children}
    </div>
  );
}

/** The right end of a panel's head, for the tools of what the panel holds; none outside of panels. */
export const PanelHead = createContext<HTMLElement | null | undefined>(undefined);

/** A group of things on a page: a heading, what belongs beside it, and a hairline around. */
export function Panel({
  title,
  actions,
  children,
  flush,
}: {
  title: string;
  actions?: ReactNode;
  children: ReactNode;
  /** Without padding: for tables and lists. */
  flush?: boolean;
}) {
  const [head, setHead] = useState<HTMLElement | null>(null);
  return (
    <section
      className="min-w-0 overflow-hidden rounded-md border border-line bg-surface"
      aria-label={title}
    >
      <header className="flex min-h-9 flex-wrap items-center gap-x-2 border-line border-b px-3 max-md:py-1">
        <h2 className="min-w-0 flex-1 truncate font-medium text-13 max-md:min-w-fit">{title}</h2>
        {actions}
        <div ref={setHead} className="empty:hidden" />
      </header>
      <PanelHead value={head}>
        <div className={flush ? undefined : "p-3"}>{children}</div>
      </PanelHead>
    </section>
  );
}

/** Facts as pairs. */
export function Facts({
  items,
}: {
  items: readonly (readonly [label: string, value: ReactNode] | false | "" | null | undefined)[];
}) {
  return (
    <dl className="grid grid-cols-[minmax(88px,auto)_minmax(0,1fr)] gap-x-4 gap-y-1.5">
      {items.map(
        (item) =>
          item && (
            <div key={item[0]} className="contents">
              <dt className="text-muted">{item[0]}</dt>
              <dd className="min-w-0 wrap-anywhere">{item[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
