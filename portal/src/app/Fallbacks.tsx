import type { ErrorComponentProps } from "@tanstack/react-router";
import { useEffect } from "react";
import { EmptyState, ErrorState, LinkButton, Skeleton } from "@/design";
import { useStored } from "@/lib/stored";

/** While the server says who is signed in: the frame, in place. */
export function FramePending() {
  const [railOpen] = useStored("rail", true);
  return (
    <div className="flex h-full" data-skeleton aria-busy="true">
      <div
        className="shrink-0 border-line border-r bg-surface max-md:hidden"
        style={{ width: railOpen ? "var(--rail-open)" : "var(--rail)" }}
      />
      <div className="min-w-0 flex-1">
        <div className="h-(--topbar) border-line border-b bg-surface" />
        <PagePending />
      </div>
    </div>
  );
}

/** While a page's code is on its way: its head, in place. */
export function PagePending() {
  return (
    <div className="flex flex-col gap-4 p-4" role="status" aria-label="Loading">
      <Skeleton width={120} height={20} />
      <Skeleton width="60%" />
      <Skeleton width="40%" />
    </div>
  );
}

/** A page broke. The frame around it goes on. */
export function PageError({ error, reset }: ErrorComponentProps) {
  const text = error instanceof Error ? error.message : String(error);
  const outdated = /dynamically imported module|Failed to fetch|module script/i.test(text);
  return (
    <>
      <h1 className="sr-only">This page failed</h1>
      <ErrorState
        error={
          outdated
            ? new Error("The portal was updated while it was open here. Load the page again.")
            : error
        }
        onRetry={outdated ? () => location.reload() : reset}
      />
    </>
  );
}

export function PageNotFound() {
  useEffect(() => {
    document.title = "Not found · Berth";
  }, []);
  return (
    <>
      <h1 className="sr-only">Not found</h1>
      <EmptyState
        title="There is nothing at this address"
        action={<LinkButton to="/">Home</LinkButton>}
      >
        It may have been moved or mistyped. Ctrl-K finds any job, page or action.
      </EmptyState>
    </>
  );
}
