import { ArrowDown, ArrowUp, Columns3, Download } from "lucide-react";
import { Fragment, type MouseEvent, type ReactNode, useContext } from "react";
import { createPortal } from "react-dom";
import { csv, download } from "@/lib/csv";
import { cx } from "@/lib/cx";
import { count, plural } from "@/lib/format";
import { Button } from "./Button";
import { Checkbox } from "./Field";
import { Popover } from "./Overlay";
import { PanelHead, Skeleton } from "./States";
import type { TableProps } from "./Table";
import { Tooltip } from "./Tooltip";
import { type Column, nextSort, says, sortOf } from "./table-model";

/** Filters at the left, columns and CSV at the right; what can be done with a selection in its place. */
export function TableBar<T>({
  toolbar,
  picker,
  bulk,
  csv: file,
  rows,
  all,
  visible,
  selected,
  selectedRows,
  onSelect,
  choose,
  reset,
  total,
  more,
  narrow,
  fit,
}: TableProps<T> & {
  all: readonly Column<T>[];
  visible: readonly Column<T>[];
  selected: ReadonlySet<string>;
  selectedRows: () => T[];
  choose: (column: string, on: boolean) => void;
  reset: () => void;
  narrow: boolean;
}) {
  const some = selected.size > 0 && bulk;
  const known = total ?? (more?.has ? undefined : rows?.length);
  const head = useContext(PanelHead);
  // Without filters it would be a line of its own for two icons: the panel's head has room for them.
  const inHead = !toolbar && !some && head;
  const bar = (
    <div
      data-table-bar
      className={cx(
        "flex shrink-0 items-start gap-2",
        inHead ? "-mr-1.5" : fit ? "px-4 py-1" : "min-h-10 px-4 pb-2",
      )}
    >
      {some ? (
        <div
          role="toolbar"
          aria-label="With the selected rows"
          className="flex min-w-0 flex-1 flex-wrap items-center gap-2"
        >
          <span className="font-medium" role="status">
            {count(selected.size)} selected
          </span>
          {bulk(selectedRows())}
          <Button look="quiet" keys="esc" onClick={() => onSelect?.(new Set())}>
            Clear
          </Button>
        </div>
      ) : (
        !inHead && (
          <div className="flex min-h-7 min-w-0 flex-1 flex-wrap items-center gap-2">{toolbar}</div>
        )
      )}
      {known !== undefined && rows && (
        <span className="self-start py-1.5 text-12 text-muted leading-4 tabular-nums max-md:hidden">
          {plural(known, "row")}
        </span>
      )}
      {picker}
      {!narrow && !picker && (
        <Popover
          align="end"
          width={220}
          label="Columns"
          trigger={
            <Button look="quiet" icon={Columns3} iconOnly>
              Columns
            </Button>
          }
        >
          <div className="flex flex-col p-2">
            {all.map((c) => (
              <Checkbox
                key={c.id}
                label={c.header}
                checked={visible.some((v) => v.id === c.id)}
                disabled={c.fixed ?? false}
                onChange={(e) => choose(c.id, e.target.checked)}
                className="h-7 rounded-sm px-1 hover:bg-surface-2"
              />
            ))}
            <Button look="quiet" size="sm" onClick={reset} className="mt-1 self-start">
              Reset
            </Button>
          </div>
        </Popover>
      )}
      {file && (
        <Button
          look="quiet"
          icon={Download}
          iconOnly
          disabled={!rows || rows.length === 0}
          onClick={() => {
            const columns = visible.filter((c) => c.value);
            const body = (rows ?? []).map((r) => columns.map((c) => c.value?.(r)));
            download(`${file}.csv`, csv([columns.map((c) => c.header), ...body]));
          }}
        >
          {more?.has ? `CSV of the ${count(rows?.length)} rows loaded` : "CSV"}
        </Button>
      )}
    </div>
  );
  return inHead ? createPortal(bar, inHead) : bar;
}

export function Head<T>({
  columns,
  template,
  least,
  sort,
  onSort,
  all,
}: {
  columns: readonly Column<T>[];
  template: string;
  least: number;
  sort: string | undefined;
  onSort: ((sort: string | undefined) => void) | undefined;
  all?: { checked: boolean; some: boolean; onChange: (on: boolean) => void };
}) {
  const s = sortOf(sort);
  return (
    <div role="rowgroup" className="sticky top-0 z-10 bg-bg" style={{ minWidth: least }}>
      <div
        role="row"
        aria-rowindex={1}
        className="grid h-8 items-center border-line border-b px-[calc(var(--edge)-8px)] text-12 text-muted"
        style={{ gridTemplateColumns: template }}
      >
        {all && (
          <div role="columnheader" className="flex justify-center">
            <Checkbox
              label="Select all rows"
              hideLabel
              checked={all.checked}
              indeterminate={all.some && !all.checked}
              onChange={(e) => all.onChange(e.target.checked)}
            />
          </div>
        )}
        {columns.map((c) => {
          const on = s?.key === c.sort && c.sort !== undefined;
          const Arrow = s?.desc ? ArrowDown : ArrowUp;
          const words = <span className="truncate">{c.header}</span>;
          return (
            <div
              key={c.id}
              role="columnheader"
              aria-sort={on ? (s?.desc ? "descending" : "ascending") : undefined}
              className={cx("flex min-w-0 px-2", c.align === "right" && "justify-end")}
            >
              <Tooltip text={c.hint}>
                {c.sort && onSort ? (
                  <button
                    type="button"
                    onClick={() => onSort(nextSort(c, sort))}
                    className={cx(
                      "group/sort relative flex min-w-0 items-center rounded-sm hover:text-fg",
                      on && "font-medium text-fg",
                    )}
                  >
                    {words}
                    <Arrow
                      size={12}
                      aria-hidden
                      // In the room between columns, so that no name is cut for it.
                      className={cx(
                        "absolute",
                        c.align === "right" ? "-left-3.5" : "-right-3.5",
                        !on && "opacity-0 group-hover/sort:opacity-60",
                      )}
                    />
                  </button>
                ) : (
                  words
                )}
              </Tooltip>
            </div>
          );
        })}
      </div>
    </div>
  );
}

interface RowProps {
  row: unknown;
  domId: string;
  index: number;
  top: number;
  height: number;
  columns: readonly Column<unknown>[];
  template: string;
  cursor: boolean;
  open: boolean;
  selected: boolean;
  onToggle?: (range: boolean) => void;
  onOpen?: () => void;
  onPoint: () => void;
}

/** A click that was meant for something in the row, or that ends a selection of text, opens nothing. */
function meant(e: MouseEvent): boolean {
  if ((e.target as HTMLElement).closest("a,button,input,label")) return false;
  return !window.getSelection()?.toString();
}

function look({ cursor, open, selected, onOpen }: RowProps) {
  return cx(
    "absolute inset-x-0 border-line border-b",
    onOpen && "cursor-default",
    open ? "bg-accent-soft" : selected ? "bg-accent-soft/60" : "hover:bg-surface-2",
    cursor &&
      "group-focus-visible/table:shadow-[inset_2px_0_0_var(--accent)] shadow-[inset_2px_0_0_var(--line-strong)]",
  );
}

function rowProps(p: RowProps) {
  return {
    role: "row",
    id: p.domId,
    "aria-rowindex": p.index + 2,
    "aria-selected": p.onToggle ? p.selected : p.open || undefined,
    onClick: (e: MouseEvent) => {
      if (!meant(e)) return;
      p.onPoint();
      if (e.shiftKey && p.onToggle) p.onToggle(true);
      else p.onOpen?.();
    },
  };
}

export function WideRow(p: RowProps) {
  return (
    <div
      {...rowProps(p)}
      className={cx(look(p), "grid items-center px-[calc(var(--edge)-8px)]")}
      style={{
        gridTemplateColumns: p.template,
        height: p.height,
        transform: `translateY(${p.top}px)`,
      }}
    >
      {p.onToggle && <Box {...p} />}
      {p.columns.map((c) => (
        <div
          key={c.id}
          role="gridcell"
          className={cx("min-w-0 truncate px-2", c.align === "right" && "text-right tabular-nums")}
        >
          {c.cell(p.row)}
        </div>
      ))}
    </div>
  );
}

/** Two lines: what names it and its main figure, then the rest. */
export function NarrowRow(p: RowProps) {
  const of = (place: Column<unknown>["narrow"]) =>
    p.columns.filter((c) => c.narrow === place && says(c, p.row));
  // What has no value are buttons: taller than a line of text, so they have both lines to stand in.
  const buttons = of("end").filter((c) => !c.value);
  const meta = of("meta");
  return (
    <div
      {...rowProps(p)}
      data-narrow
      className={cx(
        look(p),
        "flex items-center gap-2 pr-(--edge)",
        p.onToggle ? "pl-1" : "pl-(--edge)",
      )}
      style={{ height: p.height, transform: `translateY(${p.top}px)` }}
    >
      {p.onToggle && <Box {...p} />}
      <div className="min-w-0 flex-1">
        <div className="flex items-baseline justify-between gap-3">
          <Cells
            columns={of("title")}
            row={p.row}
            className="flex min-w-0 flex-1 gap-2 font-medium"
          />
          <Cells
            columns={of("end").filter((c) => c.value)}
            row={p.row}
            className="flex shrink-0 items-center gap-2"
          />
        </div>
        {meta.length > 0 && (
          <Cells
            columns={meta}
            row={p.row}
            className="flex min-w-0 items-center gap-1.5 text-12 text-muted"
            dots
          />
        )}
      </div>
      {buttons.length > 0 && (
        <Cells columns={buttons} row={p.row} className="flex shrink-0 items-center gap-1" />
      )}
    </div>
  );
}

function Cells({
  columns,
  row,
  className,
  dots,
}: {
  columns: readonly Column<unknown>[];
  row: unknown;
  className: string;
  dots?: boolean;
}): ReactNode {
  return (
    <div className={className}>
      {columns.map((c, i) => (
        <Fragment key={c.id}>
          {dots && i > 0 && (
            <span aria-hidden className="text-faint">
              ·
            </span>
          )}
          <div role="gridcell" className={cx("min-w-0 truncate", i > 0 && dots && "shrink-0")}>
            {c.cell(row)}
          </div>
        </Fragment>
      ))}
    </div>
  );
}

function Box({ selected, onToggle, index, onPoint }: RowProps) {
  return (
    <div role="gridcell" className="flex w-9 shrink-0 justify-center">
      <Checkbox
        label={`Select row ${index + 1}`}
        hideLabel
        checked={selected}
        tabIndex={-1}
        onClick={(e) => {
          onPoint();
          onToggle?.(e.shiftKey);
        }}
        onChange={() => {}}
        className="p-2"
      />
    </div>
  );
}

export function SkeletonRows<T>({
  columns,
  template,
  least,
  height,
  narrow,
  select,
  n,
}: {
  columns: readonly Column<T>[];
  template: string;
  least: number;
  height: number;
  narrow: boolean;
  select: boolean;
  n: number;
}) {
  return (
    <div aria-hidden style={{ minWidth: narrow ? undefined : least }}>
      {Array.from({ length: n }, (_, i) => (
        <div
          key={i}
          className={cx(
            "border-line border-b",
            narrow
              ? "flex flex-col justify-center gap-2 px-(--edge)"
              : "grid items-center px-[calc(var(--edge)-8px)]",
          )}
          style={narrow ? { height } : { height, gridTemplateColumns: template }}
        >
          {narrow ? (
            <>
              <Skeleton width={`${50 + ((i * 17) % 30)}%`} />
              <Skeleton width={`${30 + ((i * 23) % 30)}%`} height={10} />
            </>
          ) : (
            <>
              {select && <span />}
              {columns.map((c, j) => (
                <div key={c.id} className={cx("px-2", c.align === "right" && "flex justify-end")}>
                  <Skeleton width={`${45 + ((i * 17 + j * 29) % 45)}%`} />
                </div>
              ))}
            </>
          )}
        </div>
      ))}
    </div>
  );
}
