// Sums over time, piled up by key: the costs of each day by team.

import {
  type KeyboardEvent,
  memo,
  type PointerEvent,
  useDeferredValue,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { fit, hatch, measurer, point, useRedraw, useSize } from "../common/canvas";
import { HiddenTable, Patterns, Readout, Tip, toneClass } from "../common/parts";
import { clamp, dayText, momentText, tickText, timeTicks } from "../common/scale";
import { type Ink, seriesColour, useInk } from "../common/theme";
import { hitStack, type StackKey, type StackPoint, stackScale } from "./layout";
import "./stack-bar.css";

export type { StackKey, StackPoint } from "./layout";

export interface StackColumnsProps {
  title: string;
  keys: readonly StackKey[];
  points: readonly StackPoint[];
  step: number;
  format: (value: number) => string;
  /** Shorter, for the axis; `format` where left out. */
  tick?: ((value: number) => string) | undefined;
  height?: number | undefined;
  onOpen?: ((at: number, key: string | null) => void) | undefined;
}

const DAY = 86_400_000;

export function StackColumns(props: StackColumnsProps) {
  const { title, keys, points, step, format, height = 200 } = props;
  const tick = props.tick ?? format;
  const ink = useInk();
  const redraw = useRedraw();
  const id = useId();
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { width } = useSize(frame);
  const scale = useMemo(() => stackScale(points), [points]);
  const axis = Math.ceil(Math.max(...scale.ticks.map((v) => tick(v).length)) * 7) + 12;
  const box = { x: axis, y: 8, w: Math.max(1, width - axis), h: height - 34 };
  const [on, setOn] = useState<{ column: number; part: number; x: number; y: number } | null>(null);
  const [spoken, setSpoken] = useState("");
  const when = (at: number) => (step >= DAY ? dayText(at) : momentText(at));

  useLayoutEffect(() => {
    const c = canvas.current && fit(canvas.current, width, height);
    if (c && width > axis)
      draw(c, { keys, points, step, box, scale, tick, ink, on: on?.column ?? -1 });
  }, [keys, points, step, width, height, axis, scale, ink, redraw, on?.column]);

  const move = (event: PointerEvent<HTMLDivElement>) => {
    const { x, y } = point(event, event.currentTarget);
    const hit = hitStack(points, box, scale.top, x, y);
    setOn(hit && { ...hit, x, y });
  };
  const go = (column: number) => {
    const p = points[column];
    if (!p) return;
    setOn({ column, part: -1, x: box.x + ((column + 0.5) / points.length) * box.w, y: box.y + 20 });
    const parts = keys.map((k, i) => `${k.label} ${format(p.values[i] ?? 0)}`);
    setSpoken(`${when(p.at)}: ${format(total(p))} in all, ${parts.join(", ")}`);
  };
  const press = (event: KeyboardEvent) => {
    const last = points.length - 1;
    const to: Record<string, number> = {
      ArrowLeft: (on?.column ?? points.length) - 1,
      ArrowRight: (on?.column ?? -1) + 1,
      Home: 0,
      End: last,
    };
    const next = to[event.key];
    if (next !== undefined) {
      event.preventDefault();
      go(clamp(next, 0, last));
    } else if (event.key === "Enter" && on) open();
    else if (event.key === "Escape") setOn(null);
  };
  const open = () => {
    const p = on && points[on.column];
    if (p) props.onOpen?.(p.at, keys[on.part]?.key ?? null);
  };
  const here = on && points[on.column];
  return (
    <div className="viz-frame">
      <div
        ref={frame}
        className="viz-focus viz-stack-area"
        role="application"
        aria-roledescription="chart"
        aria-label={`${title}. Arrow keys read the columns, Enter opens.`}
        tabIndex={0}
        onPointerMove={move}
        onPointerLeave={() => setOn(null)}
        onClick={open}
        onKeyDown={press}
        onBlur={() => setOn(null)}
      >
        <canvas ref={canvas} />
        {here && (
          <Tip x={on.x} y={on.y}>
            <div className="viz-tip-title">{when(here.at)}</div>
            <div className="viz-tip-rows">
              {keys
                .map((k, i) => ({ k, i, v: here.values[i] ?? 0 }))
                .filter(({ v }) => v > 0)
                .reverse()
                .map(({ k, i, v }) => (
                  <TipRow
                    key={k.key}
                    id={id}
                    k={k}
                    index={i}
                    text={format(v)}
                    lit={on.part === i}
                  />
                ))}
              <span />
              <span>in all</span>
              <span className="viz-number">{format(total(here))}</span>
            </div>
          </Tip>
        )}
      </div>
      <ul className="viz-legend">
        {keys.map((k, i) => (
          <li key={k.key}>
            <Box id={id} k={k} index={i} />
            <span className="viz-cut">{k.label}</span>
          </li>
        ))}
      </ul>
      <Readout text={spoken} />
      <Numbers title={title} keys={keys} points={points} format={format} step={step} />
    </div>
  );
}

function Box({ id, k, index }: { id: string; k: StackKey; index: number }) {
  // Not by its key: an address of a pattern cannot have every character.
  const pattern = `${id}-${index}`;
  return (
    <svg
      className={k.quiet ? "viz-tone-quiet" : toneClass(k.tone ?? index)}
      width="10"
      height="10"
      aria-hidden="true"
    >
      {k.hatched && <Patterns id={pattern} />}
      <rect className={k.hatched ? "viz-stack-hollow" : "viz-stack-part"} width="10" height="10" />
      {k.hatched && <rect fill={`url(#${pattern}-hatch)`} width="10" height="10" />}
    </svg>
  );
}

function TipRow(p: { id: string; k: StackKey; index: number; text: string; lit: boolean }) {
  return (
    <>
      <Box id={`${p.id}t`} k={p.k} index={p.index} />
      <span>{p.lit ? <strong>{p.k.label}</strong> : p.k.label}</span>
      <span className="viz-number">{p.text}</span>
    </>
  );
}

function total(p: StackPoint): number {
  return p.values.reduce((sum, v) => sum + v, 0);
}

const Numbers = memo(function Numbers(
  given: Pick<StackColumnsProps, "title" | "keys" | "points" | "format" | "step">,
) {
  const { title, keys, format, step } = given;
  const points = useDeferredValue(given.points);
  const most = 120;
  return (
    <HiddenTable
      caption={title}
      head={["Time", ...keys.map((k) => k.label), "In all"]}
      rows={points
        .slice(-most)
        .map((p) => [
          step >= DAY ? dayText(p.at) : momentText(p.at),
          ...keys.map((_, i) => format(p.values[i] ?? 0)),
          format(total(p)),
        ])}
      note={points.length > most ? `The last ${most} of ${points.length}` : undefined}
    />
  );
});

interface Drawing {
  keys: readonly StackKey[];
  points: readonly StackPoint[];
  step: number;
  box: { x: number; y: number; w: number; h: number };
  scale: { ticks: number[]; top: number };
  tick: (value: number) => string;
  ink: Ink;
  on: number;
}

function draw(c: CanvasRenderingContext2D, d: Drawing): void {
  const { box, scale, ink, points } = d;
  c.clearRect(0, 0, box.x + box.w, box.y + box.h + 40);
  c.font = `12px ${ink.fontSans}`;
  const measure = measurer(c.font);
  c.textBaseline = "middle";
  const y = (v: number) => box.y + box.h - (v / scale.top) * box.h;
  for (const value of scale.ticks) {
    c.fillStyle = value === 0 ? ink.lineStrong : ink.line;
    c.fillRect(box.x, Math.round(y(value)), box.w, 1);
    c.fillStyle = ink.textMuted;
    c.textAlign = "right";
    c.fillText(d.tick(value), box.x - 8, y(value));
  }
  const pitch = box.w / Math.max(1, points.length);
  const gap = pitch > 6 ? Math.min(4, pitch * 0.2) : 0;
  const wide = Math.min(pitch - gap, 48);
  points.forEach((p, i) => {
    const x = box.x + i * pitch + (pitch - wide) / 2;
    if (i === d.on) {
      c.fillStyle = ink.surface2;
      c.fillRect(box.x + i * pitch, box.y, pitch, box.h);
    }
    let sum = 0;
    p.values.forEach((value, k) => {
      if (!(value > 0)) return;
      const bottom = y(sum);
      sum += value;
      const tall = Math.max(bottom - y(sum), 0.5);
      const key = d.keys[k];
      const colour = key?.quiet ? ink.lineStrong : seriesColour(ink, key?.tone ?? k);
      if (key?.hatched) {
        c.fillStyle = ink.surface;
        c.fillRect(x, y(sum), wide, tall);
        c.fillStyle = hatch(c, colour, 5, 1.5);
      } else c.fillStyle = colour;
      c.fillRect(x, y(sum), wide, tall);
      if (tall > 3) {
        c.fillStyle = ink.surface;
        c.fillRect(x, y(sum), wide, 1);
      }
    });
  });
  const from = points[0]?.at ?? 0;
  const to = (points[points.length - 1]?.at ?? 0) + d.step;
  // At most one for each column: a column of a day has no hours.
  const most = Math.min(points.length, Math.max(2, Math.floor(box.w / 64)));
  const ticks = timeTicks(from, to, most);
  c.textAlign = "center";
  c.fillStyle = ink.textMuted;
  for (const at of ticks.at) {
    // Under the middle of the column that begins then.
    const x = box.x + ((at - from) / (to - from)) * box.w + pitch / 2;
    const text = tickText(at, ticks.step);
    const half = measure(text) / 2;
    if (x - half < box.x - 8 || x + half > box.x + box.w) continue;
    c.fillText(text, x, box.y + box.h + 15);
  }
}
