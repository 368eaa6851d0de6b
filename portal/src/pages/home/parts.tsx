import type { ReactNode } from "react";
import { Skeleton, TextLink } from "@/design";

/** A job's name as a link, with its number lighter. */
export function JobName({ id, name }: { id: string; name: string }) {
  return (
    <span className="flex min-w-0 items-baseline gap-1.5">
      <TextLink to="/jobs/$job" params={{ job: id }} className="min-w-0 truncate" title={name}>
        <bdi>{name}</bdi>
      </TextLink>
      <span className="shrink-0 text-12 text-faint">{id}</span>
    </span>
  );
}

export function RowsSkeleton({ rows = 3, label }: { rows?: number; label: string }) {
  return (
    <div
      data-skeleton
      role="status"
      aria-label={`Loading ${label}`}
      aria-busy="true"
      className="divide-y divide-line"
    >
      {Array.from({ length: rows }, (_, i) => (
        <div key={i} className="flex h-11 items-center gap-4 px-3">
          <Skeleton width={140} />
          <span className="flex-1" />
          <Skeleton width={90} />
        </div>
      ))}
    </div>
  );
}

/** What a panel says when it has nothing to show. */
export function Nothing({ children }: { children: ReactNode }) {
  return <p className="px-3 py-3 text-muted">{children}</p>;
}

/** A heading over the sections of one role. */
export function Group({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex flex-col gap-3">
      <h2 className="mt-2 font-semibold text-14">{title}</h2>
      {children}
    </section>
  );
}

/** In the place of a headline figure that is on its way. */
export function ComingFigure() {
  return (
    <span data-skeleton className="flex h-7 items-center">
      <Skeleton width={56} />
    </span>
  );
}
