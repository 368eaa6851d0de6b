// The log viewer: a million lines, followed, searched and copied.

import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { useSize } from "../common/canvas";
import { clamp } from "../common/scale";
import "../common/viz.css";
import { useInk } from "../common/theme";
import { copyText, copyWords } from "./copy";
import "./log-view.css";
import { Row } from "./Row";
import { type Extent, endPlain, endWrapped, placeOf, rowsFor, scrollTopOf, spacer } from "./scroll";
import type { LogStore } from "./store";
import { type RankChip, Toolbar } from "./Toolbar";
import { useSearch, useVersion } from "./use-log";

export type { RankChip } from "./Toolbar";

export interface LogViewProps {
  title: string;
  store: LogStore;
  /** More lines may come: the end is followed until one scrolls up. */
  live?: boolean | undefined;
  ranks?: readonly RankChip[] | undefined;
  onRank?: ((id: string) => void) | undefined;
  /** How to get what was dropped: a link, or a command. */
  wholeLog?: ReactNode;
  /** What stands here while there are no lines. */
  empty?: ReactNode;
  height?: number | undefined;
  /** A line that is shown at first, from 1: a shared link's. */
  line?: number | undefined;
  onPick?: ((first: number, last: number) => void) | undefined;
}

const ROW = 18;
const CHARACTER = 7.3;
const NO_RANKS: readonly RankChip[] = [];

export function LogView(props: LogViewProps) {
  const { title, store, live = false, height = 480 } = props;
  const ink = useInk();
  const version = useVersion(store);
  const scroller = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const probe = useRef<HTMLSpanElement>(null);
  const size = useSize(scroller);
  const [character, setCharacter] = useState(CHARACTER);
  const [query, setQuery] = useState({ text: "", regex: false, matchCase: false });
  const [wrap, setWrap] = useState(false);
  const [times, setTimes] = useState(false);
  const [only, setOnly] = useState(false);
  const [following, setFollowing] = useState(live);
  const [place, setPlace] = useState(0);
  const [current, setCurrent] = useState(-1);
  const [picked, setPicked] = useState<{ from: number; to: number } | null>(
    props.line ? { from: props.line - 1, to: props.line } : null,
  );
  const [said, setSaid] = useState("");
  const [seen, setSeen] = useState(store.end);
  const searching = useSearch(store, query, version);
  const { search } = searching;
  const matches = only && search ? search.found.lines : null;

  const first = store.first;
  const count = matches ? matches.length : store.count;
  const lineAt = (index: number) => (matches ? (matches.at(index) ?? -1) : first + index);
  const digits = Math.max(4, String(store.end).length);
  const gutter = (digits + 3) * character;
  const beside =
    gutter + (times && store.timed ? 14 * character : 0) + (store.ranked ? 5 * character : 0) + 16;
  const columns = Math.max(20, Math.floor((size.width - beside) / character));
  const rowsOf = (index: number) => rowsFor(store.lengthOf(lineAt(index)), columns);
  const end = wrap
    ? endWrapped(count, ROW, size.height, rowsOf)
    : endPlain(count, ROW, size.height);
  const extent: Extent = { count, row: ROW, room: size.height, end };
  const latest = useRef({ extent, first, place, following, expected: -1 });
  latest.current = { ...latest.current, extent, first, place, following };

  const move = (to: number) => {
    const { extent: e } = latest.current;
    const next = clamp(to, 0, e.end);
    latest.current.place = next;
    setPlace(next);
    const top = scrollTopOf(next, e);
    latest.current.expected = top;
    if (scroller.current) scroller.current.scrollTop = top;
  };
  const letGo = (to: number) => {
    setFollowing(live && to >= latest.current.extent.end - 0.5);
  };
  const go = (to: number) => {
    move(to);
    letGo(to);
  };

  useLayoutEffect(() => {
    const wide = (probe.current?.getBoundingClientRect().width ?? 0) / 100;
    if (wide > 1) setCharacter(wide);
  }, []);
  useEffect(() => setFollowing(live), [live]);

  // New lines: stay at the end when following, else where one reads.
  const before = useRef(first);
  useLayoutEffect(() => {
    const gone = first - before.current;
    before.current = first;
    if (following) {
      move(end);
      setSeen(store.end);
    } else if (gone > 0 && !matches) move(place - gone);
    else if (place > end) move(end);
  }, [version, following, end, size.width, size.height]);

  const started = useRef(false);
  useEffect(() => {
    if (started.current || !props.line || store.end < props.line || size.height === 0) return;
    started.current = true;
    setFollowing(false);
    move(props.line - 1 - first - size.height / ROW / 3);
  });

  const scrolled = () => {
    const top = scroller.current?.scrollTop ?? 0;
    if (Math.abs(top - latest.current.expected) < 1.5) return;
    latest.current.expected = -1;
    const next = placeOf(top, latest.current.extent);
    latest.current.place = next;
    setPlace(next);
    letGo(next);
  };
  // A bar that stands for more than it can would jump; wheels then move lines, not the bar.
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      const { extent: e, place: now } = latest.current;
      const exact = spacer(e) - e.room >= e.end * e.row - 1;
      if (exact || event.ctrlKey || event.shiftKey || event.deltaY === 0) return;
      event.preventDefault();
      const lines = event.deltaMode === 1 ? event.deltaY : event.deltaY / ROW;
      const to = clamp(now + lines, 0, e.end);
      move(to);
      letGo(to);
    };
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  const step = (by: 1 | -1) => {
    const found = search?.found.lines;
    if (!found || found.length === 0) return;
    const from = current >= 0 ? current : Math.floor(lineAt(Math.floor(place)));
    let index = by > 0 ? found.from(current >= 0 ? from + 1 : from) : found.from(from) - 1;
    if (index >= found.length) index = 0;
    if (index < 0) index = found.length - 1;
    const number = found.at(index) ?? 0;
    setCurrent(number);
    setFollowing(false);
    const at = matches ? index : number - first;
    const inSight = at >= place + 1 && at <= place + size.height / ROW - 2 && !wrap;
    if (!inSight) move(at - size.height / ROW / 3);
  };
  const change = (part: Partial<typeof query>) => {
    setQuery({ ...query, ...part });
    setCurrent(-1);
    if (part.text === "") setOnly(false);
  };
  const toggleOnly = () => {
    const near = lineAt(Math.floor(place));
    setOnly(!only);
    setFollowing(false);
    const to = only ? near - first : (search?.found.lines.from(near) ?? 0);
    requestAnimationFrame(() => move(to));
  };

  const keys = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "f" && !event.altKey) focusSearch(event);
      return;
    }
    if (event.target instanceof HTMLInputElement) return;
    const page = size.height / ROW - 1;
    const to: Record<string, number> = {
      ArrowUp: place - 1,
      ArrowDown: place + 1,
      PageUp: place - page,
      PageDown: place + page,
      Home: 0,
      End: end,
    };
    const next = to[event.key];
    if (next !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      go(next);
    } else if (event.key === "/") focusSearch(event);
    else if (event.key === "n") step(1);
    else if (event.key === "N") step(-1);
    else if (event.key === "Escape" && picked) setPicked(null);
    else return;
    event.stopPropagation();
  };
  const focusSearch = (event: KeyboardEvent) => {
    event.preventDefault();
    input.current?.focus();
    input.current?.select();
  };

  const pick = (event: MouseEvent) => {
    const from = event.target instanceof HTMLElement ? event.target.dataset.line : undefined;
    if (from === undefined) return;
    const number = Number(from);
    const next =
      event.shiftKey && picked
        ? { from: Math.min(picked.from, number), to: Math.max(picked.to, number + 1) }
        : picked?.from === number && picked.to === number + 1
          ? null
          : { from: number, to: number + 1 };
    setPicked(next);
    if (next) props.onPick?.(next.from + 1, next.to);
  };
  const copy = async (withTimes: boolean) => {
    const range = picked ?? { from: store.first, to: store.end };
    setSaid(await copyWords(copyText(store, range, withTimes)));
  };

  const atEnd = place >= end - 0.01;
  const rows = Math.ceil(size.height / ROW) + 1;
  const top = wrap && atEnd ? Math.max(0, count - rows) : Math.floor(place);
  const bottom = Math.min(count, top + rows);
  const offset = wrap && atEnd ? 0 : (place - top) * ROW * (wrap ? rowsOf(top) : 1);
  const shown: ReactNode[] = [];
  for (let i = top; i < bottom; i++) {
    const number = lineAt(i);
    const line = store.line(number);
    if (!line) continue;
    shown.push(
      <Row
        key={number}
        number={number}
        text={line.text}
        at={line.at}
        rank={line.rank}
        expression={searching.expression}
        current={number === current}
        picked={picked !== null && number >= picked.from && number < picked.to}
        times={times && store.timed}
        ranks={store.ranked}
        digits={digits}
        ink={ink}
      />,
    );
  }
  const full = wrap && atEnd && count >= size.height / ROW;
  const wide = wrap ? undefined : Math.max(size.width, beside + store.widest * character + 16);
  const fresh = store.end - seen;
  return (
    <section className="viz-log" aria-label={title} onKeyDown={keys}>
      <Toolbar
        input={input}
        text={query.text}
        onText={(text) => change({ text })}
        regex={query.regex}
        onRegex={() => change({ regex: !query.regex })}
        matchCase={query.matchCase}
        onMatchCase={() => change({ matchCase: !query.matchCase })}
        count={countWords(search, searching.error, current)}
        failed={searching.error !== null}
        found={(search?.found.lines.length ?? 0) > 0}
        onStep={step}
        onlyMatches={only}
        onOnlyMatches={toggleOnly}
        ranks={props.ranks ?? NO_RANKS}
        onRank={props.onRank}
        timed={store.timed}
        times={times}
        onTimes={() => setTimes(!times)}
        wrap={wrap}
        onWrap={() => setWrap(!wrap)}
        live={live}
        following={following}
        onFollow={() => (following ? setFollowing(false) : go(end))}
        onCopy={copy}
        picked={picked ? picked.to - picked.from : 0}
        said={said}
      />
      {store.dropped > 0 && (
        <div className="viz-log-dropped" role="note">
          The first {store.dropped.toLocaleString("en-US")} lines are not kept here, to save memory.{" "}
          {props.wholeLog}
        </div>
      )}
      <div className="viz-log-body" style={{ height }}>
        <div
          ref={scroller}
          className={`viz-log-scroll ${wrap ? "viz-log-wrap" : ""}`}
          role="region"
          aria-label={`${title}: ${count.toLocaleString("en-US")} lines`}
          tabIndex={0}
          onScroll={scrolled}
          onClick={pick}
        >
          <div className="viz-log-window" style={{ height: size.height, width: wide }}>
            <div
              className={full ? "viz-log-lines viz-log-bottom" : "viz-log-lines"}
              style={full ? undefined : { transform: `translateY(${-offset}px)` }}
            >
              {shown}
            </div>
          </div>
          <div style={{ height: Math.max(0, spacer(extent) - size.height), width: wide }} />
        </div>
        {count === 0 && (
          <div className="viz-log-empty">
            {only ? "No line matches" : (props.empty ?? "No lines yet")}
          </div>
        )}
        {!following && !atEnd && count > 0 && (
          <button type="button" className="viz-button viz-log-jump" onClick={() => go(end)}>
            ↓ Jump to end
            {live && fresh > 0 && <span> {fresh.toLocaleString("en-US")} new</span>}
          </button>
        )}
        <span className="viz-hidden viz-log-probe" aria-hidden="true">
          <span ref={probe}>{"0".repeat(100)}</span>
        </span>
      </div>
    </section>
  );
}

function countWords(
  search: ReturnType<typeof useSearch>["search"],
  error: string | null,
  current: number,
): string {
  if (error) return error;
  if (!search) return "";
  const { lines, done } = search.found;
  const n = lines.length.toLocaleString("en-US");
  if (lines.length === 0) return done ? "no line matches" : "searching…";
  const dots = done ? "" : "…";
  if (current < 0) return `${n} ${lines.length === 1 ? "line" : "lines"}${dots}`;
  return `${(lines.from(current) + 1).toLocaleString("en-US")} of ${n}${dots}`;
}
