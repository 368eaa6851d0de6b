import { columnVisibilityFeature, tableFeatures, useTable } from "@tanstack/react-table";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { cx } from "@/lib/cx";
import { count } from "@/lib/format";
import { useStored } from "@/lib/stored";
import { typing } from "./Drawer";
import { ErrorNote, ErrorState, PanelHead } from "./States";
import { Head, NarrowRow, SkeletonRows, TableBar, WideRow } from "./TableParts";
import { between, type Column, fitting, says } from "./table-model";

export type { Column } from "./table-model";
export { sorted } from "./table-model";

export interface TableProps<T> {
  /** Under which the user's columns are kept. */
  id: string;
  /** What the rows are, for those who do not see them: "Jobs". */
  label: string;
  columns: readonly Column<T>[];
  /** None while they are on their way for the first time. */
  rows: readonly T[] | undefined;
  rowId: (row: T) => string;
  error?: unknown;
  onRetry?: () => void;
  /** From the address, and into it. */
  sort?: string | undefined;
  onSort?: (sort: string | undefined) => void;
  /** A click on the row, or Enter. */
  onOpen?: (row: T) => void;
  /** The row whose drawer is open. */
  open?: string | undefined;
  /** Ids; with `onSelect` rows have a box, and x selects. */
  selected?: ReadonlySet<string>;
  onSelect?: (selected: ReadonlySet<string>) => void;
  /** What can be done with the selected rows: buttons. */
  bulk?: (rows: T[]) => ReactNode;
  /** When there is none: an EmptyState. */
  empty: ReactNode;
  /** Pages of a long list: called near the end of what is there. */
  more?: { has: boolean; loading: boolean; load: () => void };
  /** How many there are in all, where that is known. */
  total?: number | undefined;
  /** Filters, at the left of the bar. */
  toolbar?: ReactNode;
  /** A control to choose columns, for tables with hundreds of them. */
  picker?: ReactNode;
  /** Name of the file without its ending; with it rows can be taken along. */
  csv?: string;
  /** 28 instead of 32 pixels. */
  compact?: boolean;
  /** As high as its rows, for short lists in a panel. Otherwise it fills its place and scrolls. */
  fit?: boolean;
  /** The old rows are shown while new ones come. */
  stale?: boolean;
}

const features = tableFeatures({ columnVisibilityFeature });
const NO_ROWS: never[] = [];
const NO_SELECTION: ReadonlySet<string> = new Set();

export function Table<T>(props: TableProps<T>) {
  const { id, label, rowId, onOpen, open, onSelect, more, fit, sort } = props;
  const selected = props.selected ?? NO_SELECTION;
  const rows = props.rows ?? (NO_ROWS as readonly T[]);
  const inPanel = useContext(PanelHead) !== undefined;
  const domId = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const room = useRoom(scroller);
  const narrow = room < NARROW;
  // Of a short list all rows are here: they say whether any has a second line.
  const second = !fit || rows.some((row) => props.columns.some((c) => isMeta(c, row)));
  const rowHeight = narrow ? (second ? 56 : 44) : props.compact ? 28 : 32;

  const [chosen, setChosen] = useStored<Record<string, boolean>>(`table:${id}`, NO_CHOICE);
  const visibility = useMemo(() => {
    const out: Record<string, boolean> = {};
    for (const c of props.columns) out[c.id] = c.fixed ? true : (chosen[c.id] ?? !c.hidden);
    return out;
  }, [props.columns, chosen]);

  const defs = useMemo(
    () => props.columns.map((c) => ({ id: c.id, accessorFn: () => null, meta: c })),
    [props.columns],
  );
  const table = useTable({
    features,
    // The column model is ours (table-model.ts); the library keeps which of them are seen.
    columns: defs as never,
    data: rows as never,
    getRowId: rowId as never,
    state: { columnVisibility: visibility } as never,
  } as never) as unknown as { getVisibleLeafColumns(): { id: string }[] };
  const shown = new Set(table.getVisibleLeafColumns().map((c) => c.id));
  const wanted = props.columns.filter((c) => shown.has(c.id));
  const edges = (inPanel ? 8 : 16) + (onSelect ? SELECT_WIDTH : 0);
  const columns = narrow ? wanted : fitting(wanted, room - edges, chosen);

  const [cursor, setCursor] = useState<string>();
  const anchor = useRef<string>(undefined);
  const ids = useMemo(() => rows.map(rowId), [rows, rowId]);
  const at = cursor === undefined ? -1 : ids.indexOf(cursor);

  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: fit ? rows.length : 12,
    scrollPaddingStart: narrow ? 0 : 32,
  });
  useEffect(() => virtual.measure(), [rowHeight]);

  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  useEffect(() => {
    if (more?.has && !more.loading && last >= rows.length - 30) more.load();
  }, [last, rows.length, more]);

  // Into view goes what was chosen, once; live data moves nobody's place.
  const goTo = useCallback(
    (index: number) => {
      const clamped = Math.max(0, Math.min(ids.length - 1, index));
      const next = ids[clamped];
      if (next === undefined) return;
      setCursor(next);
      virtual.scrollToIndex(clamped, { align: "auto" });
    },
    [ids, virtual],
  );
  const seenOpen = useRef<string>(undefined);
  useEffect(() => {
    if (open === seenOpen.current) return;
    const index = open === undefined ? -1 : ids.indexOf(open);
    if (open !== undefined && index < 0) return;
    seenOpen.current = open;
    if (index >= 0) goTo(index);
  }, [open, ids, goTo]);

  const toggle = (row: string, range: boolean) => {
    if (!onSelect) return;
    const next = new Set(selected);
    const on = !selected.has(row);
    const from = range ? anchor.current : undefined;
    for (const one of from ? between(ids, from, row) : [row]) {
      if (on) next.add(one);
      else next.delete(one);
    }
    anchor.current = row;
    setCursor(row);
    onSelect(next);
  };

  const onKey = (e: KeyboardEvent | React.KeyboardEvent): boolean => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(e.target)) return false;
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 320) / rowHeight) - 2);
    const inside = (e.target as HTMLElement).closest?.("a,button") !== null;
    switch (e.key) {
      case "j":
      case "ArrowDown":
        goTo(at + 1);
        return true;
      case "k":
      case "ArrowUp":
        goTo(at < 0 ? 0 : at - 1);
        return true;
      case "PageDown":
        goTo(at + page);
        return true;
      case "PageUp":
        goTo(at - page);
        return true;
      case "Home":
        goTo(0);
        return true;
      case "End":
        goTo(ids.length - 1);
        return true;
      case "x":
      case " ":
        if (at < 0 || !onSelect || (e.key === " " && inside)) return false;
        toggle(ids[at] as string, e.shiftKey);
        return true;
      case "Enter": {
        const row = rows[at];
        if (!row || !onOpen || inside) return false;
        onOpen(row);
        return true;
      }
      case "Escape":
        if (selected.size === 0 || !onSelect) return false;
        onSelect(NO_SELECTION);
        return true;
      default:
        return false;
    }
  };

  // The letters work without a click into the table first, where it is what the page is about.
  const keys = useRef(onKey);
  keys.current = onKey;
  useEffect(() => {
    if (fit) return;
    const global = (e: KeyboardEvent) => {
      if (e.target !== document.body && !(e.target as HTMLElement).closest?.("h1,main")) return;
      if (scroller.current?.contains(e.target as HTMLElement)) return;
      if (!["j", "k", "x", "Enter"].includes(e.key)) return;
      if ((e.target as HTMLElement).closest?.("a,button") && e.key === "Enter") return;
      if (keys.current(e)) e.preventDefault();
    };
    window.addEventListener("keydown", global);
    return () => window.removeEventListener("keydown", global);
  }, [fit]);

  const template = useMemo(() => {
    const filler = columns.some((c) => c.grow);
    const tracks = columns.map((c) =>
      c.grow ? `minmax(${c.width}px, ${c.grow}fr)` : `${c.width}px`,
    );
    return [...(onSelect ? [`${SELECT_WIDTH}px`] : []), ...tracks, ...(filler ? [] : ["1fr"])].join(
      " ",
    );
  }, [columns, onSelect]);
  const least = columns.reduce((n, c) => n + c.width, onSelect ? SELECT_WIDTH : 0);

  const first = props.rows === undefined;
  const selectedRows = () => rows.filter((r) => selected.has(rowId(r)));
  const bar = props.toolbar || props.csv || props.bulk;

  return (
    // In a panel the rows begin where its heading does.
    <div
      className={cx(
        "flex min-h-0 min-w-0 flex-col",
        inPanel ? "[--edge:12px]" : "[--edge:16px]",
        !fit && "flex-1",
      )}
    >
      {bar && (
        <TableBar
          {...props}
          all={props.columns}
          visible={columns}
          selected={selected}
          selectedRows={selectedRows}
          choose={(column, on) => setChosen({ ...chosen, [column]: on })}
          reset={() => setChosen({})}
          narrow={narrow}
        />
      )}
      {props.error !== undefined && props.error !== null && !first && (
        <div className="px-4 pb-2">
          <ErrorNote error={props.error} {...(props.onRetry && { onRetry: props.onRetry })} />
        </div>
      )}
      <div
        ref={scroller}
        className={cx(
          "relative border-line border-t outline-offset-[-2px] has-[[role=grid]:focus-visible]:outline-2 has-[[role=grid]:focus-visible]:outline-focus",
          fit ? "overflow-x-auto border-t-0" : "min-h-0 flex-1 overflow-auto",
        )}
      >
        {(!narrow || rows.length > 0) && (
          <div
            role="grid"
            aria-label={label}
            aria-rowcount={props.total ?? (more?.has ? -1 : rows.length)}
            aria-colcount={columns.length + (onSelect ? 1 : 0)}
            aria-multiselectable={onSelect ? true : undefined}
            aria-busy={first || props.stale || undefined}
            aria-activedescendant={
              at >= 0 && items.some((i) => i.index === at) ? `${domId}-${at}` : undefined
            }
            tabIndex={0}
            onKeyDown={(e) => {
              if (onKey(e)) e.preventDefault();
            }}
            onFocus={(e) => {
              if (e.target === e.currentTarget && at < 0 && ids.length > 0) setCursor(ids[0]);
            }}
            className="group/table outline-none"
          >
            {!narrow && (
              <Head
                columns={columns}
                template={template}
                least={least}
                sort={sort}
                onSort={props.onSort}
                {...(onSelect && {
                  all: {
                    checked: rows.length > 0 && selected.size >= rows.length,
                    some: selected.size > 0,
                    onChange: (on: boolean) => onSelect(on ? new Set(ids) : NO_SELECTION),
                  },
                })}
              />
            )}
            {rows.length > 0 && (
              <div
                role="rowgroup"
                className={cx(
                  "relative transition-opacity duration-(--motion)",
                  props.stale && "opacity-60",
                )}
                style={{ height: virtual.getTotalSize(), minWidth: narrow ? undefined : least }}
              >
                {items.map((item) => {
                  const row = rows[item.index] as T;
                  const key = ids[item.index] as string;
                  const Row = narrow ? NarrowRow : WideRow;
                  return (
                    <Row
                      key={key}
                      row={row}
                      domId={`${domId}-${item.index}`}
                      index={item.index}
                      top={item.start}
                      height={rowHeight}
                      columns={columns as Column<unknown>[]}
                      template={template}
                      cursor={item.index === at}
                      open={key === open}
                      selected={selected.has(key)}
                      {...(onSelect && { onToggle: (range: boolean) => toggle(key, range) })}
                      {...(onOpen && { onOpen: () => onOpen(row) })}
                      onPoint={() => setCursor(key)}
                    />
                  );
                })}
              </div>
            )}
          </div>
        )}
        {first && !props.error && (
          <SkeletonRows
            columns={columns}
            template={template}
            least={least}
            height={rowHeight}
            narrow={narrow}
            select={Boolean(onSelect)}
            n={fit ? 4 : 16}
          />
        )}
        {first && props.error !== undefined && props.error !== null && (
          <ErrorState error={props.error} {...(props.onRetry && { onRetry: props.onRetry })} />
        )}
        {!first && rows.length === 0 && !props.error && props.empty}
        {more?.loading && (
          <div className="sticky left-0 px-4 py-2 text-12 text-muted" role="status">
            Loading more…
          </div>
        )}
        {!fit && rows.length > 0 && !more?.has && (props.total ?? 0) > rows.length && (
          <div className="sticky left-0 px-4 py-2 text-12 text-muted">
            The first {count(rows.length)} of {count(props.total)}. A filter shows the others.
          </div>
        )}
      </div>
    </div>
  );
}

const NO_CHOICE: Record<string, boolean> = {};

function isMeta<T>(column: Column<T>, row: T): boolean {
  return column.narrow === "meta" && says(column, row);
}

/** Below this width rows have two lines instead of columns. */
const NARROW = 480;
const SELECT_WIDTH = 36;

/** The width of the table itself, which may be less than that of the window. */
function useRoom(ref: React.RefObject<HTMLDivElement | null>): number {
  const [room, setRoom] = useState(() => (window.innerWidth < 640 ? 0 : window.innerWidth));
  useEffect(() => {
    const el = ref.current;
    if (!el) return;
    const watch = new ResizeObserver(([entry]) => {
      if (entry) setRoom(Math.floor(entry.contentRect.width));
    });
    watch.observe(el);
    return () => watch.disconnect();
  }, [ref]);
  return room;
}
