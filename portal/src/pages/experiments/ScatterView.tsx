import { useMemo } from "react";
import { Select, Switch } from "@/design";
import { count } from "@/lib/format";
import { Scatter } from "@/viz/xy/Scatter";
import { Hint } from "./FilterField";
import { axisText, COST, labelOf, namesOf, numberAt, numeric } from "./model/row";
import type { ViewProps } from "./view";

/** One metric against another or against the cost, with one point for each run. */
export default function ScatterView({ rows, chosen, search, set, open }: ViewProps) {
  const names = useMemo(() => namesOf(rows), [rows]);
  const keys = useMemo(
    () => [
      ...names.metrics.map((n) => `metrics.${n}`),
      ...names.params
        .filter((n) => rows.some((r) => numeric(r.params[n]) !== undefined))
        .map((n) => `params.${n}`),
      "duration",
    ],
    [names, rows],
  );
  const metric = keys.find((k) => k.startsWith("metrics.") && !k.startsWith("metrics.berth."));
  const x = search.sx ?? (keys.includes(COST) ? COST : "duration");
  const y = search.sy ?? metric ?? "duration";
  const marked = useMemo(() => new Set(chosen.map((r) => r.id)), [chosen]);
  const points = useMemo(
    () =>
      rows.map((row) => ({
        key: row.id,
        label: row.name,
        x: numberAt(row, x) ?? Number.NaN,
        y: numberAt(row, y) ?? Number.NaN,
        marked: marked.has(row.id),
      })),
    [rows, x, y, marked],
  );
  const there = points.filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y)).length;
  if (rows.length === 0) return <Hint>No runs to draw.</Hint>;
  const options = keys.map((key) => ({ value: key, label: labelOf(key) }));
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <span className="flex items-center gap-2">
          <span aria-hidden>Y axis</span>
          <Select
            aria-label="Y axis"
            className="w-48"
            options={options}
            value={y}
            onChange={(sy) => set({ sy })}
          />
        </span>
        <span className="flex items-center gap-2">
          <span aria-hidden>X axis</span>
          <Select
            aria-label="X axis"
            className="w-48"
            options={options}
            value={x}
            onChange={(sx) => set({ sx })}
          />
        </span>
        <Switch
          label="Logarithmic"
          checked={search.log ?? false}
          onChange={(on) => set({ log: on || undefined })}
        />
        <span role="status" className="text-12 text-muted">
          {count(there)} of {count(rows.length)} runs have both values
          {chosen.length > 0 && `; ${count(chosen.length)} selected ones stand out`}
        </span>
      </div>
      <Scatter
        title={`${labelOf(y)} against ${labelOf(x)}, ${there} runs`}
        points={points}
        xTitle={labelOf(x)}
        yTitle={labelOf(y)}
        xText={(v) => axisText(x, v)}
        yText={(v) => axisText(y, v)}
        xLog={search.log ?? false}
        yLog={search.log ?? false}
        onOpen={open}
      />
    </div>
  );
}
