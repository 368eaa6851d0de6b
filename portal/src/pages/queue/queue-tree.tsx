import { ChevronRight, TriangleAlert } from "lucide-react";
import { type KeyboardEvent, useMemo, useRef, useState } from "react";
import { Cut, Skeleton, Tooltip } from "@/design";
import { cx } from "@/lib/cx";
import { useStored } from "@/lib/stored";
import { ShareBar } from "@/viz/share-bar/ShareBar";
import { type Row, shown, widest } from "./tree";
import { COLUMNS } from "./tree-columns";

const FROM = { md: "max-md:hidden", lg: "max-lg:hidden", xl: "max-xl:hidden" } as const;
const TEMPLATE =
  "grid-cols-[minmax(0,1fr)_104px_64px] md:grid-cols-[minmax(160px,1fr)_minmax(120px,1.2fr)_104px_76px_64px] lg:grid-cols-[minmax(100px,1fr)_minmax(96px,1.2fr)_88px_72px_64px_60px_88px_104px] xl:grid-cols-[minmax(120px,1fr)_minmax(140px,1.3fr)_96px_80px_80px_60px_88px_56px_84px_112px]";
const LINE = cx("grid items-center gap-x-3 px-3", TEMPLATE);

/** The tenants as a tree. A row filters what waits; arrows go through it, left and right fold it. */
export function QueueTree({
  rows,
  chosen,
  onChoose,
}: {
  rows: readonly Row[];
  chosen: string | undefined;
  onChoose: (queue: string | undefined) => void;
}) {
  const [folded, setFolded] = useStored<string[]>("queue:folded", NONE);
  const closed = useMemo(() => new Set(folded), [folded]);
  const seen = shown(rows, closed);
  const most = widest(rows);
  // Where no queue has children, room for arrows would only indent every name.
  const folds = rows.some((r) => r.children.length > 0);
  const [at, setAt] = useState<string>();
  const cursor = seen.some((r) => r.name === at)
    ? at
    : chosen && seen.some((r) => r.name === chosen)
      ? chosen
      : seen[0]?.name;
  const grid = useRef<HTMLDivElement>(null);

  const fold = (name: string, on: boolean) =>
    setFolded(on ? [...folded.filter((n) => n !== name), name] : folded.filter((n) => n !== name));
  const goTo = (name: string | undefined) => {
    if (name === undefined) return;
    setAt(name);
    grid.current?.querySelector<HTMLElement>(`[data-queue="${CSS.escape(name)}"]`)?.focus();
  };
  const onKey = (e: KeyboardEvent, row: Row, index: number) => {
    const next = (): boolean => {
      switch (e.key) {
        case "ArrowDown":
          goTo(seen[index + 1]?.name);
          return true;
        case "ArrowUp":
          goTo(seen[index - 1]?.name);
          return true;
        case "Home":
          goTo(seen[0]?.name);
          return true;
        case "End":
          goTo(seen.at(-1)?.name);
          return true;
        case "ArrowRight":
          if (closed.has(row.name)) fold(row.name, false);
          else goTo(row.children[0]);
          return true;
        case "ArrowLeft":
          if (row.children.length > 0 && !closed.has(row.name)) fold(row.name, true);
          else goTo(row.parent);
          return true;
        case "Enter":
        case " ":
          onChoose(row.name === chosen ? undefined : row.name);
          return true;
        default:
          return false;
      }
    };
    if (!e.ctrlKey && !e.metaKey && !e.altKey && next()) e.preventDefault();
  };

  return (
    <div
      ref={grid}
      role="treegrid"
      aria-label="Queues"
      aria-rowcount={rows.length + 1}
      className="min-w-0"
    >
      <div role="row" className={cx(LINE, "h-8 border-line border-b text-12 text-muted")}>
        <span role="columnheader">Queue</span>
        <span role="columnheader" className="max-md:hidden">
          Share
        </span>
        {COLUMNS.map((c) => (
          <span
            key={c.id}
            role="columnheader"
            className={cx("truncate", c.right ? "text-right" : "pl-3", c.from && FROM[c.from])}
          >
            <Tooltip text={c.hint}>
              <span>{c.header}</span>
            </Tooltip>
          </span>
        ))}
      </div>
      {seen.map((row, i) => {
        const parent = row.children.length > 0;
        const on = row.name === chosen;
        return (
          <div
            key={row.name}
            role="row"
            data-queue={row.name}
            aria-level={row.level}
            aria-expanded={parent ? !closed.has(row.name) : undefined}
            aria-selected={on}
            tabIndex={row.name === cursor ? 0 : -1}
            onFocus={() => setAt(row.name)}
            onKeyDown={(e) => onKey(e, row, i)}
            onClick={() => onChoose(on ? undefined : row.name)}
            className={cx(
              LINE,
              "cursor-pointer border-line border-b py-1 outline-offset-[-2px] last:border-b-0 hover:bg-surface-2 max-md:py-2 md:min-h-8",
              on && "bg-surface-2 shadow-[inset_2px_0_0_var(--accent)]",
            )}
          >
            <span
              role="gridcell"
              className="flex min-w-0 items-center gap-1"
              style={{ paddingLeft: (row.level - 1) * 16 }}
            >
              {parent ? (
                <button
                  type="button"
                  tabIndex={-1}
                  aria-label={closed.has(row.name) ? `Open ${row.name}` : `Fold ${row.name}`}
                  onClick={(e) => {
                    e.stopPropagation();
                    fold(row.name, !closed.has(row.name));
                  }}
                  className="grid size-5 shrink-0 place-items-center rounded-sm text-muted hover:text-fg"
                >
                  <ChevronRight
                    size={14}
                    aria-hidden
                    className={cx(
                      "transition-transform duration-(--motion)",
                      !closed.has(row.name) && "rotate-90",
                    )}
                  />
                </button>
              ) : (
                folds && <span className="w-5 shrink-0" />
              )}
              <Cut className={parent ? "font-medium" : ""}>{row.name}</Cut>
              {row.overcommitted && (
                <Tooltip text="Its children are promised more than it has itself.">
                  <TriangleAlert
                    size={14}
                    className="shrink-0 text-warn"
                    aria-label="Overcommitted"
                  />
                </Tooltip>
              )}
            </span>
            <span
              role="gridcell"
              className="min-w-0 max-md:order-last max-md:col-span-3 max-md:mt-1"
            >
              <Share row={row} most={most} />
            </span>
            {COLUMNS.map((c) => (
              <span
                key={c.id}
                role="gridcell"
                className={cx(
                  "min-w-0 truncate tabular-nums",
                  c.right ? "text-right" : "pl-3",
                  c.from && FROM[c.from],
                )}
              >
                {c.cell(row)}
              </span>
            ))}
          </div>
        );
      })}
    </div>
  );
}

const NONE: string[] = [];

function Share({ row, most }: { row: Row; most: number }) {
  if (row.quota === 0 && row.used === 0 && row.fair === 0)
    return <span className="text-12 text-faint max-md:hidden">nothing promised, nothing used</span>;
  const words = row.text || undefined;
  const bar = (
    <div>
      <ShareBar
        bare
        used={row.used}
        quota={row.quota}
        fair={row.fair}
        lent={row.lent}
        most={most}
      />
    </div>
  );
  return words ? <Tooltip text={words}>{bar}</Tooltip> : bar;
}

export function TreeSkeleton() {
  return (
    <div
      data-skeleton
      role="status"
      aria-label="Loading queues"
      aria-busy="true"
      className="divide-y divide-line"
    >
      {[160, 120, 140, 100].map((w) => (
        <div key={w} className="flex h-8 items-center gap-6 px-3">
          <Skeleton width={w} />
          <Skeleton width="30%" />
          <span className="flex-1" />
          <Skeleton width={180} />
        </div>
      ))}
    </div>
  );
}
