import { Skeleton } from "@/design";

export function Loading() {
  return (
    <div data-skeleton aria-busy="true" className="grid grid-cols-1 gap-4 p-4 lg:grid-cols-2">
      {[240, 240, 160, 160].map((height, i) => (
        <Skeleton key={i} height={height} />
      ))}
    </div>
  );
}
