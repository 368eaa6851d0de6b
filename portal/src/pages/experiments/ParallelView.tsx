import { Rows3 } from "lucide-react";
import { useMemo, useState } from "react";
import { Button, Field, Input, Popover, Select } from "@/design";
import { count } from "@/lib/format";
import {
  type Dimension,
  type ParallelAxis,
  parallelAxis,
  type Ranges,
  readRanges,
  within,
  writeRanges,
} from "@/viz/parallel/model";
import { Parallel, Ramp } from "@/viz/parallel/Parallel";
import { extentOf } from "@/viz/xy/axis";
import { Hint } from "./FilterField";
import { groupsOf, KeyPicker } from "./KeyPicker";
import { axisText, labelOf, namesOf, numberAt, numeric, type Row, textAt } from "./model/row";
import type { ViewProps } from "./view";

const MOST_AXES = 12;
const MOST_MARKED = 100;

/** Params and metrics as parallel axes, with one line for each run. */
export default function ParallelView({ rows, chosen, search, set, open }: ViewProps) {
  const names = useMemo(() => namesOf(rows), [rows]);
  const drawn = chosen.length > 1 ? chosen : rows;
  const usual = useMemo(() => usualAxes(drawn), [drawn]);
  const keys = (search.axes ?? usual).slice(0, MOST_AXES);
  const joined = keys.join();
  const axes = useMemo(
    () => keys.map((key) => parallelAxis(dimensionOf(drawn, key))),
    [drawn, joined],
  );
  const colourKey = search.colour ?? keys.findLast((k) => k.startsWith("metrics."));
  const colour = useMemo(() => colourOf(drawn, colourKey), [drawn, colourKey]);
  const ranges = useMemo(() => readRanges(search.brush), [search.brush]);
  const inside = useMemo(() => within(axes, ranges, drawn.length), [axes, ranges, drawn]);
  const left = inside.reduce((n, one) => n + one, 0);
  const brushed = Object.keys(ranges).some((key) => keys.includes(key));
  const range = (key: string, to: readonly [number, number] | undefined) => {
    const { [key]: _, ...others } = ranges;
    set({ brush: writeRanges(to ? { ...others, [key]: to } : others) });
  };
  const numbers = [
    ...names.metrics.map((n) => `metrics.${n}`),
    ...names.params
      .filter((n) => drawn.some((r) => numeric(r.params[n]) !== undefined))
      .map((n) => `params.${n}`),
    "duration",
  ];
  if (rows.length === 0) return <Hint>No runs to draw.</Hint>;
  return (
    <div className="flex flex-col gap-2 p-4">
      <div className="flex flex-wrap items-center gap-2">
        <KeyPicker
          label="Axes"
          icon={Rows3}
          groups={groupsOf(names, ["user", "status", "duration"])}
          value={keys}
          most={MOST_AXES}
          onChange={(axes) => set({ axes })}
          reset={() => set({ axes: undefined })}
        />
        <Select
          aria-label="Colour"
          className="w-52"
          placeholder="One colour"
          options={numbers.map((key) => ({ value: key, label: `Colour: ${labelOf(key)}` }))}
          value={colourKey}
          onChange={(key) => set({ colour: key || undefined })}
        />
        {colour && colourKey && (
          <Ramp
            label=""
            from={axisText(colourKey, colour.from)}
            to={axisText(colourKey, colour.to)}
          />
        )}
        <span role="status" className="text-12 text-muted">
          {brushed
            ? `${count(left)} of ${count(drawn.length)} runs are within the ranges`
            : `${count(drawn.length)} runs. Drag along an axis to select a range.`}
        </span>
        {brushed && (
          <>
            <Button
              size="sm"
              denied={left === 0 ? "No run is within the ranges." : undefined}
              onClick={() =>
                set({
                  runs: drawn
                    .filter((_, i) => inside[i])
                    .slice(0, MOST_MARKED)
                    .map((r) => r.id),
                  view: undefined,
                })
              }
            >
              {left > MOST_MARKED ? `Select the first ${MOST_MARKED}` : "Select these"}
            </Button>
            <Button size="sm" look="quiet" onClick={() => set({ brush: undefined })}>
              Clear the ranges
            </Button>
          </>
        )}
      </div>
      {axes.length < 2 ? (
        <Hint>Choose at least two axes.</Hint>
      ) : (
        <Parallel
          title={`Parallel coordinates of ${drawn.length} runs over ${keys.map(labelOf).join(", ")}`}
          axes={axes}
          count={drawn.length}
          ranges={ranges}
          onRange={range}
          colour={colour?.at}
          text={(axis, value) => axis.texts?.[value] ?? axisText(axis.key, value)}
          name={(i) => drawn[i]?.name ?? ""}
          onOpen={(i) => drawn[i] && open(drawn[i].id)}
          head={(axis) => (
            <Head
              key={axis.key}
              axis={axis}
              ranges={ranges}
              onRange={range}
              onRemove={() => set({ axes: keys.filter((k) => k !== axis.key) })}
              onMove={(by) => set({ axes: moved(keys, axis.key, by) })}
            />
          )}
        />
      )}
    </div>
  );
}

/** The name of an axis. Its menu does by keyboard what dragging does. */
function Head({
  axis,
  ranges,
  onRange,
  onRemove,
  onMove,
}: {
  axis: ParallelAxis;
  ranges: Ranges;
  onRange: (key: string, range: readonly [number, number] | undefined) => void;
  onRemove: () => void;
  onMove: (by: 1 | -1) => void;
}) {
  const [open, setOpen] = useState(false);
  const range = ranges[axis.key];
  return (
    <Popover
      open={open}
      onOpenChange={setOpen}
      width={240}
      label={`Axis ${axis.label}`}
      trigger={
        <button
          type="button"
          className="flex h-7 min-w-0 items-center gap-1 rounded-md px-2 font-medium text-12 text-fg hover:bg-surface-2"
        >
          <bdi className="min-w-0 truncate">{axis.label}</bdi>
          {range && <span className="size-1.5 shrink-0 rounded-full bg-accent" aria-hidden />}
          <span className="sr-only">{range ? ", has a range" : ", no range"}</span>
        </button>
      }
    >
      <RangeForm
        axis={axis}
        range={range}
        onRange={(to) => {
          onRange(axis.key, to);
          setOpen(false);
        }}
      />
      <div className="flex flex-wrap gap-1 border-line border-t p-2">
        <Button size="sm" look="quiet" onClick={() => onMove(-1)}>
          Move left
        </Button>
        <Button size="sm" look="quiet" onClick={() => onMove(1)}>
          Move right
        </Button>
        <Button size="sm" look="quiet" onClick={onRemove}>
          Remove
        </Button>
      </div>
    </Popover>
  );
}

function RangeForm({
  axis,
  range,
  onRange,
}: {
  axis: ParallelAxis;
  range: readonly [number, number] | undefined;
  onRange: (range: readonly [number, number] | undefined) => void;
}) {
  const [from, setFrom] = useState(range ? String(range[0]) : "");
  const [to, setTo] = useState(range ? String(range[1]) : "");
  if (axis.texts)
    return (
      <div className="flex max-h-72 flex-col overflow-y-auto p-2">
        {axis.texts.map((text, i) => {
          const on = range !== undefined && i >= range[0] && i <= range[1];
          return (
            <button
              key={text}
              type="button"
              aria-pressed={on}
              onClick={() => onRange([i - 0.25, i + 0.25])}
              className="min-h-7 rounded-sm px-2 text-left hover:bg-surface-2"
            >
              <bdi className={on ? "font-medium" : undefined}>{text}</bdi>
            </button>
          );
        })}
        <Button size="sm" look="quiet" onClick={() => onRange(undefined)} className="self-start">
          All
        </Button>
      </div>
    );
  const apply = () => {
    const [low, high] = [numeric(from), numeric(to)];
    if (low === undefined && high === undefined) onRange(undefined);
    else
      onRange([
        low ?? Math.min(axis.axis.from, high ?? 0),
        high ?? Math.max(axis.axis.to, low ?? 0),
      ]);
  };
  return (
    <form
      className="flex flex-col gap-2 p-3"
      onSubmit={(e) => {
        e.preventDefault();
        apply();
      }}
    >
      <div className="flex gap-2">
        <Field label="From">
          {(p) => <Input {...p} value={from} onChange={(e) => setFrom(e.target.value)} />}
        </Field>
        <Field label="To">
          {(p) => <Input {...p} value={to} onChange={(e) => setTo(e.target.value)} />}
        </Field>
      </div>
      <div className="flex gap-2">
        <Button size="sm" type="submit">
          Keep the range
        </Button>
        <Button size="sm" look="quiet" onClick={() => onRange(undefined)}>
          All
        </Button>
      </div>
    </form>
  );
}

function moved(keys: readonly string[], key: string, by: 1 | -1): string[] {
  const out = keys.filter((k) => k !== key);
  const at = Math.max(0, Math.min(out.length, keys.indexOf(key) + by));
  return [...out.slice(0, at), key, ...out.slice(at)];
}

/** A numeric axis if all values of the key are numbers, else an axis of texts. */
function dimensionOf(rows: readonly Row[], key: string): Dimension {
  const texts = rows.map((row) => textAt(row, key));
  const numbers = rows.map((row) => numberAt(row, key));
  const all = texts.every((text, i) => text === undefined || numbers[i] !== undefined);
  return { key, label: labelOf(key), values: all ? numbers : texts };
}

function colourOf(rows: readonly Row[], key: string | undefined) {
  if (!key) return undefined;
  const values = rows.map((row) => numberAt(row, key) ?? Number.NaN);
  const extent = extentOf([values]);
  if (!extent) return undefined;
  const [from, to] = extent;
  const at = Float64Array.from(values, (v) => (to > from ? (v - from) / (to - from) : v - v + 0.5));
  return { from, to, at };
}

/** Params that differ, the first metrics, and the cost. */
function usualAxes(rows: readonly Row[]): string[] {
  const names = namesOf(rows.slice(0, 1000));
  const differs = (name: string) => rows.some((r) => r.params[name] !== rows[0]?.params[name]);
  const plain = names.metrics.filter((n) => !/^(berth|system)[./]/.test(n));
  return [
    ...names.params
      .filter(differs)
      .slice(0, 4)
      .map((n) => `params.${n}`),
    ...(names.metrics.includes("berth.cost") ? ["metrics.berth.cost"] : []),
    ...plain.slice(0, 3).map((n) => `metrics.${n}`),
  ];
}
