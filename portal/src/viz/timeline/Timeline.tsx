// The state line of a job over its attempts.

import { type KeyboardEvent, memo, useId, useMemo, useRef, useState } from "react";
import { useSize } from "../common/canvas";
import { HiddenTable, Patterns, Readout, Tip } from "../common/parts";
import { clamp, momentText, spanText, tickText, timeTicks } from "../common/scale";
import {
  type Attempt,
  type Placed,
  placeSegments,
  rangeOf,
  type Segment,
  shown,
  summary,
} from "./layout";
import "./timeline.css";

export type { Attempt, Segment, SegmentState } from "./layout";

export interface TimelineProps {
  title: string;
  attempts: readonly Attempt[];
  now: number;
  from?: number | undefined;
  to?: number | undefined;
  onOpen?: ((segment: Segment, attempt: number) => void) | undefined;
}

// What ends an attempt is a moment, and the most important part: it gets room for its glyph.
const ends = (s: Segment) => s.state === "preempted" || s.state === "ended";
const least = (s: Segment) => (ends(s) ? 20 : 6);
const leastSmall = (s: Segment) => (ends(s) ? 4 : 2);

const BAR = 24;
const TOP = 20;

export function Timeline({ title, attempts, now, from, to, onOpen }: TimelineProps) {
  const frame = useRef<HTMLDivElement>(null);
  const { width } = useSize(frame);
  const id = useId();
  const whole = rangeOf(attempts, now);
  const range = { from: from ?? whole.from, to: to ?? whole.to };
  const placed = placeSegments(attempts, range, now, width, least);
  const [active, setActive] = useState<number | null>(null);
  const [spoken, setSpoken] = useState("");
  const at = active === null ? undefined : placed[active];

  const go = (index: number) => {
    const next = clamp(index, 0, placed.length - 1);
    setActive(next);
    const p = placed[next];
    if (p) setSpoken(sentence(p, now));
  };
  const keys = (event: KeyboardEvent) => {
    if (placed.length === 0) return;
    const to: Record<string, number> = {
      ArrowLeft: (active ?? placed.length) - 1,
      ArrowRight: (active ?? -1) + 1,
      Home: 0,
      End: placed.length - 1,
    };
    const index = to[event.key];
    if (index !== undefined) {
      event.preventDefault();
      go(index);
    } else if (event.key === "Escape") setActive(null);
    else if (event.key === "Enter" && at) onOpen?.(at.segment, at.attempt);
  };

  const ticks = timeTicks(range.from, range.to, Math.max(2, Math.floor(width / 110)));
  const x = (t: number) => ((t - range.from) / (range.to - range.from)) * width;
  return (
    <div
      ref={frame}
      className="viz-frame viz-state-line"
      role="application"
      aria-roledescription="timeline"
      aria-label={`${title}. ${summary(attempts, now, spanText)}. Arrow keys read its parts.`}
      tabIndex={0}
      onKeyDown={keys}
      onBlur={() => setActive(null)}
      onPointerLeave={() => setActive(null)}
    >
      <svg width={width} height={TOP + BAR + 22} aria-hidden="true">
        <Hatches id={id} />
        {starts(placed).map(({ number, left, room }) => (
          <g key={number}>
            {left > 0 && <line className="viz-sl-rule" x1={left} x2={left} y1={4} y2={TOP + BAR} />}
            {room > 16 && (
              <text className="viz-sl-attempt" x={left + (left > 0 ? 5 : 0)} y={13}>
                {room > 74 ? `attempt ${number}` : number}
              </text>
            )}
          </g>
        ))}
        {placed.map((p, i) => (
          // biome-ignore lint/a11y/noStaticElementInteractions: the keys of the whole line do the same
          <g
            key={`${p.attempt}-${p.segment.from}-${p.segment.state}`}
            className={`viz-sl-part viz-state-${shown(p.segment).tone} ${i === active ? "viz-sl-on" : ""}`}
            onPointerEnter={() => setActive(i)}
            onClick={() => onOpen?.(p.segment, p.attempt)}
          >
            <Bar p={p} y={TOP} tall={BAR} pattern={id} live={p.segment.to === null} />
            <Word p={p} />
          </g>
        ))}
        {ticks.at.map((t) => {
          const left = x(t);
          if (left < 18 || left > width - 18) return null;
          return (
            <text key={t} className="viz-sl-tick" x={left} y={TOP + BAR + 16}>
              {tickText(t, ticks.step)}
            </text>
          );
        })}
      </svg>
      {at && (
        <Tip x={clamp(at.x + at.width / 2, 0, width)} y={TOP + BAR}>
          <Details p={at} now={now} />
        </Tip>
      )}
      <Readout text={spoken} />
      <HiddenTable
        caption={title}
        head={["Attempt", "State", "From", "Lasted", "Cause", "By", "Cost"]}
        rows={placed.map(({ attempt, segment: s }) => [
          String(attempt),
          shown(s).word,
          momentText(s.from, true),
          spanText((s.to ?? now) - s.from),
          s.cause ?? "",
          s.by ?? "",
          s.cost ?? "",
        ])}
      />
    </div>
  );
}

/** The same line for a table's cell. */
export const TimelineSmall = memo(function TimelineSmall(props: {
  attempts: readonly Attempt[];
  now: number;
  width?: number | undefined;
}) {
  const { attempts, now, width = 140 } = props;
  const id = useId();
  const placed = useMemo(
    () => placeSegments(attempts, rangeOf(attempts, now), now, width, leastSmall),
    [attempts, now, width],
  );
  const words = summary(attempts, now, spanText);
  return (
    <svg className="viz-sl-small" width={width} height="12" role="img" aria-label={words}>
      <title>{words}</title>
      <Hatches id={id} />
      {placed.map((p) => (
        <g
          key={`${p.attempt}-${p.segment.from}-${p.segment.state}`}
          className={`viz-state-${shown(p.segment).tone}`}
        >
          <Bar p={p} y={1} tall={10} pattern={id} live={p.segment.to === null} />
        </g>
      ))}
    </svg>
  );
});

function Bar(props: { p: Placed; y: number; tall: number; pattern: string; live: boolean }) {
  const { p, y, tall, pattern, live } = props;
  const wide = Math.max(p.width - 1, 1);
  switch (p.segment.state) {
    case "running":
      return (
        <>
          <rect className="viz-sl-solid" x={p.x} y={y} width={wide} height={tall} />
          {live && (
            <rect className="viz-sl-edge" x={p.x + wide - 2} y={y} width="2" height={tall} />
          )}
        </>
      );
    case "starting":
    case "saving":
    case "stopping":
      return (
        <>
          <rect className="viz-sl-soft" x={p.x} y={y} width={wide} height={tall} />
          <rect
            fill={`url(#${pattern}${shown(p.segment).tone}-hatch)`}
            x={p.x}
            y={y}
            width={wide}
            height={tall}
          />
        </>
      );
    case "preempted":
    case "ended":
      return <rect className="viz-sl-solid" x={p.x} y={y} width={wide} height={tall} />;
    case "waiting":
    case "paused": {
      const middle = y + tall / 2;
      return (
        <>
          <rect className="viz-sl-soft" x={p.x} y={y} width={wide} height={tall} />
          <line
            className={p.segment.state === "paused" ? "viz-sl-broken" : "viz-sl-dots"}
            x1={p.x}
            x2={p.x + wide}
            y1={tall > 12 ? y + tall - 1 : middle}
            y2={tall > 12 ? y + tall - 1 : middle}
          />
        </>
      );
    }
  }
}

/** Patterns take the colour of where they are defined: one for each state that is hatched. */
function Hatches({ id }: { id: string }) {
  return (["starting", "saving"] as const).map((tone) => (
    <g key={tone} className={`viz-sl-part viz-state-${tone}`}>
      <Patterns id={`${id}${tone}`} />
    </g>
  ));
}

function Word({ p }: { p: Placed }) {
  const { glyph, word } = shown(p.segment);
  const solid = p.segment.state === "running" || p.segment.state === "ended";
  const kind = `viz-sl-word ${solid || p.segment.state === "preempted" ? "viz-sl-on-solid" : ""}`;
  const y = TOP + BAR / 2 + 4;
  if (p.width > word.length * 7 + 34) {
    return (
      <text className={kind} x={p.x + 8} y={y}>
        {glyph} {word}
      </text>
    );
  }
  if (p.width < 18) return null;
  return (
    <text className={`${kind} viz-sl-middle`} x={p.x + p.width / 2} y={y}>
      {glyph}
    </text>
  );
}

function Details({ p, now }: { p: Placed; now: number }) {
  const { segment: s } = p;
  const { glyph, word, tone } = shown(s);
  const end = s.to ?? now;
  return (
    <>
      <div className="viz-sl-head">
        <span className={`viz-state-${tone} viz-sl-glyph`}>{glyph}</span>
        <strong>{word}</strong>
        <span className="viz-sl-quiet">attempt {p.attempt}</span>
      </div>
      <div className="viz-number">
        {momentText(s.from)} {s.to === null ? "until now" : `to ${momentText(s.to)}`}
        <span className="viz-sl-quiet"> ({spanText(end - s.from)})</span>
      </div>
      {s.cause && <div>{s.cause}</div>}
      {s.by && <div className="viz-sl-quiet">by {s.by}</div>}
      {s.cost && <div className="viz-number">{s.cost}</div>}
    </>
  );
}

function sentence(p: Placed, now: number): string {
  const { segment: s } = p;
  const lasted = spanText((s.to ?? now) - s.from);
  const parts = [
    `Attempt ${p.attempt}: ${shown(s).word} for ${lasted}, from ${momentText(s.from)}`,
  ];
  if (s.cause) parts.push(s.cause);
  if (s.by) parts.push(`by ${s.by}`);
  if (s.cost) parts.push(s.cost);
  return parts.join(", ");
}

function starts(placed: readonly Placed[]) {
  const out: { number: number; left: number; room: number }[] = [];
  for (const p of placed) {
    const last = out[out.length - 1];
    if (last?.number === p.attempt) last.room = p.x + p.width - last.left;
    else out.push({ number: p.attempt, left: p.x, room: p.width });
  }
  return out;
}
