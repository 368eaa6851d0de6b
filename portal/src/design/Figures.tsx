import type { ReactNode } from "react";
import { cx } from "@/lib/cx";
import { absolute, clock, gpus, millis, money, NONE, relative, span } from "@/lib/format";
import { useNow } from "@/lib/now";
import { Tooltip } from "./Tooltip";

/** A number and, lighter, its unit. `<Figure value="3.2" unit="h" />` */
export function Figure({
  value,
  unit,
  before,
}: {
  value: ReactNode;
  unit?: ReactNode;
  before?: ReactNode;
}) {
  return (
    <span className="whitespace-nowrap tabular-nums">
      {before && <span className="text-faint">{before}</span>}
      {value}
      {unit && <span className="text-faint"> {unit}</span>}
    </span>
  );
}

/** An amount in millionths of a dollar. `rate` says per hour. */
export function Money({
  micros,
  rate,
  short,
}: {
  micros: number | null | undefined;
  rate?: boolean;
  short?: boolean;
}) {
  const text = money(micros, { short: short ?? false });
  if (text === NONE) return <None />;
  const at = text.indexOf("$") + 1;
  return (
    <span className="whitespace-nowrap tabular-nums">
      <span className="text-faint">{text.slice(0, at)}</span>
      {text.slice(at)}
      {rate && <span className="text-faint">/h</span>}
    </span>
  );
}

/** Thousandths of a GPU, and of which model. `4 × H100` */
export function Gpu({ milli, model }: { milli: number | null | undefined; model?: string | null }) {
  if (milli === null || milli === undefined) return <None />;
  return (
    <span className="whitespace-nowrap tabular-nums">
      {gpus(milli)}
      <span className="text-faint">
        {model ? ` × ${model}` : milli === 1000 ? " GPU" : " GPUs"}
      </span>
    </span>
  );
}

/** When something is or was. Hover tells the exact time; `ago` counts, `clock` tells the hour. */
export function Time({
  at,
  as = "ago",
}: {
  at: string | number | null | undefined;
  as?: "ago" | "clock" | "both";
}) {
  const t = millis(at);
  const now = useNow(t !== undefined && Math.abs(Date.now() - t) < 90_000 ? 1000 : 15_000);
  if (t === undefined) return <None />;
  const text =
    as === "ago"
      ? relative(t, now)
      : as === "clock"
        ? clock(t, now)
        : `${clock(t, now)} (${relative(t, now)})`;
  return (
    <Tooltip text={absolute(t)}>
      <time dateTime={new Date(t).toISOString()} className="whitespace-nowrap tabular-nums">
        {text}
      </time>
    </Tooltip>
  );
}

/** How long. With `from` and no `to` it goes on counting. */
export function Span({
  ms,
  from,
  to,
}: {
  ms?: number | null | undefined;
  from?: string | null | undefined;
  to?: string | null | undefined;
}) {
  const now = useNow(1000);
  const start = millis(from);
  const length = ms ?? (start === undefined ? undefined : (millis(to) ?? now) - start);
  if (length === undefined || length === null) return <None />;
  return <span className="whitespace-nowrap tabular-nums">{span(Math.max(0, length))}</span>;
}

export function None() {
  return <span className="text-faint">{NONE}</span>;
}

/** An id, a node, a command: monospace, cut with the whole in the tooltip when `cut`. */
export function Mono({ children, cut }: { children: string; cut?: boolean }) {
  if (!cut) return <code className="text-12">{children}</code>;
  return (
    <Tooltip text={children}>
      <code className="block truncate text-12">{children}</code>
    </Tooltip>
  );
}

/** Text of users: cut at the end of its place, whole in the tooltip, in its own direction. */
export function Cut({ children, className }: { children: string; className?: string }) {
  return (
    <Tooltip text={children.length > 16 ? children : undefined}>
      <bdi className={cx("block min-w-0 truncate text-left", className)}>{children}</bdi>
    </Tooltip>
  );
}

/** A headline figure: label above, value, and a remark below. For strips at the head of a page. */
export function Stat({
  label,
  children,
  note,
  tone,
}: {
  label: string;
  children: ReactNode;
  note?: ReactNode;
  tone?: "good" | "warn" | "bad";
}) {
  return (
    <div className="min-w-0">
      <div className="truncate text-12 text-muted max-md:whitespace-normal">{label}</div>
      <div
        className={cx(
          "truncate font-semibold text-20 max-md:whitespace-normal",
          tone === "good" && "text-good",
          tone === "warn" && "text-warn",
          tone === "bad" && "text-bad",
        )}
      >
        {children}
      </div>
      {note && (
        <div className="truncate text-12 text-muted max-md:line-clamp-2 max-md:whitespace-normal max-md:[&_bdi]:whitespace-normal">
          {note}
        </div>
      )}
    </div>
  );
}

/** Stats side by side with hairlines between, wrapping to two per line where it is narrow. */
export function Stats({ children }: { children: ReactNode }) {
  return (
    <div className="grid grid-cols-2 gap-px overflow-hidden rounded-md border border-line bg-line *:bg-surface *:px-4 *:py-3 max-md:[&>:last-child:nth-child(odd)]:col-span-2 md:grid-flow-col md:auto-cols-fr md:grid-cols-none">
      {children}
    </div>
  );
}

export interface BarPart {
  /** Thousandths, bytes, micros: any unit, the same for all parts and the whole. */
  value: number;
  label: string;
  tone?: "accent" | "good" | "warn" | "bad" | "muted" | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;
  /** Drawn with stripes: promised, borrowed, forecast. */
  striped?: boolean;
}

const TONES: Record<string, string> = {
  accent: "text-accent",
  good: "text-good",
  warn: "text-warn",
  bad: "text-bad",
  muted: "text-line-strong",
  1: "text-series-1",
  2: "text-series-2",
  3: "text-series-3",
  4: "text-series-4",
  5: "text-series-5",
  6: "text-series-6",
  7: "text-series-7",
  8: "text-series-8",
};

const STRIPES =
  "repeating-linear-gradient(135deg, currentColor 0 3px, color-mix(in oklch, currentColor 35%, transparent) 3px 6px)";

/** Parts of a whole as one bar, with a mark (quota, limit) on it. */
export function Bar({
  parts,
  whole,
  mark,
  label,
  height = 8,
}: {
  parts: BarPart[];
  whole: number;
  mark?: { at: number; label: string };
  /** What the bar says, for those who do not see it. */
  label: string;
  height?: number;
}) {
  const share = (n: number) => `${whole > 0 ? Math.min(100, Math.max(0, (n / whole) * 100)) : 0}%`;
  return (
    <div role="img" aria-label={label} className="relative w-full" style={{ height }}>
      <div className="flex h-full w-full gap-px overflow-hidden rounded-sm bg-surface-2">
        {parts
          .filter((p) => p.value > 0)
          .map((p) => (
            <Tooltip key={p.label} text={p.label}>
              <div
                className={TONES[p.tone ?? "accent"]}
                style={{
                  width: share(p.value),
                  minWidth: 2,
                  background: p.striped ? STRIPES : "currentColor",
                }}
              />
            </Tooltip>
          ))}
      </div>
      {mark && (
        <Tooltip text={mark.label}>
          <div
            className="absolute -top-0.5 -bottom-0.5 w-0.5 rounded-full bg-fg"
            style={{ left: `calc(${share(mark.at)} - 1px)` }}
          />
        </Tooltip>
      )}
    </div>
  );
}
