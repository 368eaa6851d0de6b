import { Skeleton } from "@/design";

/** The overview in its final geometry. */
export function OverviewSkeleton() {
  return (
    <div data-skeleton className="flex flex-col gap-4 p-4">
      <Skeleton height={82} />
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-[minmax(0,1fr)_360px]">
        <div className="flex flex-col gap-4">
          <Skeleton height={128} />
          <Skeleton height={160} />
        </div>
        <Skeleton height={300} />
      </div>
    </div>
  );
}

export function TabSkeleton() {
  return (
    <div data-skeleton aria-busy="true" className="flex flex-col gap-2 p-4">
      {[52, 68, 44, 60, 36, 64, 48].map((w) => (
        <Skeleton key={w} width={`${w}%`} />
      ))}
    </div>
  );
}
