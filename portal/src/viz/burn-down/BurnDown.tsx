// Spent against a budget, with a forecast and the day on which it runs out.

import { type KeyboardEvent, type PointerEvent, useRef, useState } from "react";
import { point, useSize } from "../common/canvas";
import { HiddenTable, Readout, Tip } from "../common/parts";
import { clamp, dayText, nearest, niceTicks, tickText, timeTicks } from "../common/scale";
import { sample } from "../line-chart/data";
import "./burn-down.css";
import { type ForecastPoint, path, type SpentPoint } from "./layout";

export type { ForecastPoint, SpentPoint } from "./layout";

export interface BurnDownProps {
  title: string;
  /** The budget's period. */
  from: number;
  to: number;
  now: number;
  limit: number;
  spent: readonly SpentPoint[];
  forecast?: readonly ForecastPoint[] | undefined;
  runsOutAt?: number | null | undefined;
  format: (value: number) => string;
  tick?: ((value: number) => string) | undefined;
  height?: number | undefined;
}

export function BurnDown(props: BurnDownProps) {
  const {
    title,
    from,
    to,
    now,
    limit,
    spent,
    forecast = [],
    runsOutAt,
    format,
    height = 200,
  } = props;
  const tick = props.tick ?? format;
  const frame = useRef<HTMLDivElement>(null);
  const { width } = useSize(frame);
  const [on, setOn] = useState<number | null>(null);
  const [spoken, setSpoken] = useState("");
  const most = Math.max(limit, ...spent.map((p) => p.spent), ...forecast.map((p) => p.p90));
  const ticks = niceTicks(0, most * 1.02 || 1, 5);
  const top = ticks[ticks.length - 1] ?? 1;
  const axis = Math.max(...ticks.map((v) => tick(v).length)) * 7 + 12;
  const box = { x: axis, y: 22, w: Math.max(1, width - axis - 8), h: height - 48 };
  const x = (at: number) => box.x + ((at - from) / (to - from || 1)) * box.w;
  const y = (v: number) => box.y + box.h - (v / top) * box.h;

  const line = spent.map((p) => [x(p.at), y(p.spent)] as const);
  const end = spent[spent.length - 1];
  const joint = end ? [{ at: end.at, p50: end.spent, p90: end.spent, p10: end.spent }] : [];
  const ahead = [...joint, ...forecast];
  const band = [
    ...ahead.map((p) => [x(p.at), y(p.p90)] as const),
    ...[...ahead].reverse().map((p) => [x(p.at), y(p.p10 ?? p.p50)] as const),
  ];
  const all = [...spent.map((p) => p.at), ...forecast.map((p) => p.at)];
  const words = (i: number) => {
    const at = all[i] ?? 0;
    const past = spent[i];
    if (past) return `${dayText(at)}: ${format(past.spent)} spent, ${percent(past.spent / limit)}`;
    const f = forecast[i - spent.length];
    return f ? `${dayText(at)}: ${format(f.p50)} expected, at worst ${format(f.p90)}` : "";
  };
  const set = (i: number) => {
    const next = clamp(i, 0, all.length - 1);
    setOn(next);
    setSpoken(words(next));
  };
  const keys = (event: KeyboardEvent) => {
    if (all.length === 0) return;
    const start = on ?? spent.length - 1;
    if (event.key === "ArrowLeft") set(start - 1);
    else if (event.key === "ArrowRight") set(start + 1);
    else if (event.key === "Home") set(0);
    else if (event.key === "End") set(all.length - 1);
    else if (event.key === "Escape") setOn(null);
    else return;
    event.preventDefault();
  };
  const move = (event: PointerEvent<HTMLDivElement>) => {
    if (all.length === 0) return;
    const at = from + ((point(event, event.currentTarget).x - box.x) / box.w) * (to - from);
    setOn(nearest(all, at));
  };
  const times = timeTicks(from, to, Math.max(2, Math.floor(box.w / 64)));
  const out = runsOutAt != null && runsOutAt >= from && runsOutAt <= to ? runsOutAt : null;
  const outLabel = out === null ? "" : `${out <= now ? "ran out" : "runs out"} ${dayText(out)}`;
  const hover = on === null ? null : (all[on] ?? null);
  const value = on === null ? 0 : (spent[on]?.spent ?? forecast[on - spent.length]?.p50 ?? 0);
  return (
    <div
      ref={frame}
      className="viz-frame viz-burn"
      role="application"
      aria-roledescription="chart"
      aria-label={`${title}: ${end ? `${format(end.spent)} of ` : ""}${format(limit)}${outLabel ? `, ${outLabel}` : ""}. Arrow keys read days.`}
      tabIndex={0}
      onKeyDown={keys}
      onPointerMove={move}
      onPointerLeave={() => setOn(null)}
      onBlur={() => setOn(null)}
    >
      <svg width={width} height={height} aria-hidden="true">
        {ticks.map((v) => (
          <g key={v}>
            <line className="viz-burn-grid" x1={box.x} x2={box.x + box.w} y1={y(v)} y2={y(v)} />
            <text className="viz-burn-y" x={box.x - 8} y={y(v) + 4}>
              {tick(v)}
            </text>
          </g>
        ))}
        {times.at.map((t) =>
          x(t) < box.x + 14 || x(t) > box.x + box.w - 14 ? null : (
            <text key={t} className="viz-burn-x" x={x(t)} y={height - 8}>
              {tickText(t, times.step)}
            </text>
          ),
        )}
        <line className="viz-burn-pace" x1={x(from)} y1={y(0)} x2={x(to)} y2={y(limit)} />
        {ahead.length > 1 && <path className="viz-burn-band" d={`${path(band)}Z`} />}
        {ahead.length > 1 && (
          <path
            className="viz-burn-ahead"
            d={path(ahead.map((p) => [x(p.at), y(p.p50)] as const))}
          />
        )}
        <path className="viz-burn-line" d={path(line)} />
        <line
          className="viz-burn-limit"
          x1={box.x}
          x2={box.x + box.w}
          y1={y(limit)}
          y2={y(limit)}
        />
        <text className="viz-burn-text" x={box.x + 4} y={y(limit) - 5}>
          budget {format(limit)}
        </text>
        {out !== null && (
          <g className="viz-burn-out">
            <line x1={x(out)} x2={x(out)} y1={y(limit)} y2={box.y + box.h} />
            <circle cx={x(out)} cy={y(limit)} r="4" />
            <text
              x={x(out) + (x(out) > box.x + box.w * 0.6 ? -8 : 8)}
              y={box.y + box.h - 8}
              textAnchor={x(out) > box.x + box.w * 0.6 ? "end" : "start"}
            >
              {outLabel}
            </text>
          </g>
        )}
        {end && <circle className="viz-burn-now" cx={x(end.at)} cy={y(end.spent)} r="3" />}
        {hover !== null && (
          <g className="viz-burn-cursor">
            <line x1={x(hover)} x2={x(hover)} y1={box.y} y2={box.y + box.h} />
            <circle cx={x(hover)} cy={y(value)} r="3.5" />
          </g>
        )}
      </svg>
      {on !== null && hover !== null && (
        <Tip x={x(hover)} y={y(value)}>
          {words(on)}
        </Tip>
      )}
      <ul className="viz-legend viz-burn-key">
        <li>
          <Line kind="line" /> spent
        </li>
        {forecast.length > 0 && (
          <li>
            <Line kind="ahead" /> forecast, with its 90 % band
          </li>
        )}
        <li>
          <Line kind="pace" /> even pace
        </li>
      </ul>
      <Readout text={spoken} />
      <HiddenTable
        caption={`${title}${outLabel ? `, ${outLabel}` : ""}`}
        head={["Day", "Spent", "Expected", "At worst"]}
        rows={sample(all.length, 60).map((i) => {
          const f = forecast[i - spent.length];
          const s = spent[i];
          return [
            dayText(all[i] ?? 0),
            s ? format(s.spent) : "",
            f ? format(f.p50) : "",
            f ? format(f.p90) : "",
          ];
        })}
      />
    </div>
  );
}

function Line({ kind }: { kind: "line" | "ahead" | "pace" }) {
  return (
    <svg width="18" height="8" aria-hidden="true">
      {kind === "ahead" && <rect className="viz-burn-band" width="18" height="8" />}
      <line className={`viz-burn-${kind}`} x1="0" x2="18" y1="4" y2="4" />
    </svg>
  );
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}
