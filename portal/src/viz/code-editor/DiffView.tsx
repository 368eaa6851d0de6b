// What is, beside what will be: shown before something is applied.

import { useMemo, useRef } from "react";
import { useSize } from "../common/canvas";
import "../common/viz.css";
import { type DiffLine, type DiffRow, diffLines, diffRows, within } from "./diff";
import "./diff.css";

export interface DiffViewProps {
  title: string;
  before: string;
  after: string;
  beforeLabel?: string | undefined;
  afterLabel?: string | undefined;
  /** Unchanged lines that stay around a change; the others are folded. */
  around?: number | undefined;
}

export function DiffView(props: DiffViewProps) {
  const { title, before, after, around = 3 } = props;
  const frame = useRef<HTMLElement>(null);
  const { width } = useSize(frame);
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const rows = useMemo(() => diffRows(lines, around), [lines, around]);
  const gone = lines.filter((l) => l.kind === "gone").length;
  const fresh = lines.filter((l) => l.kind === "new").length;
  const narrow = width > 0 && width < 680;
  const words = gone + fresh === 0 ? "no change" : `${fresh} added, ${gone} removed`;
  return (
    <section ref={frame} className="viz-diff" aria-label={`${title}: ${words}`}>
      <div className="viz-diff-head">
        <span className="viz-diff-sum">
          {gone + fresh === 0 ? (
            "No change"
          ) : (
            <>
              <b className="viz-diff-plus">+{fresh}</b> <b className="viz-diff-minus">−{gone}</b>{" "}
              lines
            </>
          )}
        </span>
        <span>
          {props.beforeLabel ?? "now"} → {props.afterLabel ?? "after"}
        </span>
      </div>
      {gone + fresh > 0 && (
        <div className="viz-diff-scroll" role="region" aria-label="Changed lines" tabIndex={0}>
          <table className={narrow ? "viz-diff-table viz-diff-narrow" : "viz-diff-table"}>
            {!narrow && (
              <colgroup>
                <col className="viz-diff-no" />
                <col />
                <col className="viz-diff-no" />
                <col />
              </colgroup>
            )}
            <tbody>
              {rows.map((row, i) =>
                narrow ? <Narrow key={i} row={row} /> : <Wide key={i} row={row} />,
              )}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function Wide({ row }: { row: DiffRow }) {
  if (row.kind === "fold") return <Fold count={row.count} columns={4} />;
  const { left, right } = row;
  return (
    <tr>
      <Cell line={left} other={right} side="left" />
      <Cell line={right} other={left} side="right" />
    </tr>
  );
}

function Narrow({ row }: { row: DiffRow }) {
  if (row.kind === "fold") return <Fold count={row.count} columns={2} />;
  const { left, right } = row;
  if (left === right) {
    return (
      <tr>
        <Cell line={left} other={right} side="left" />
      </tr>
    );
  }
  return (
    <>
      {left && (
        <tr>
          <Cell line={left} other={right} side="left" />
        </tr>
      )}
      {right && (
        <tr>
          <Cell line={right} other={left} side="right" />
        </tr>
      )}
    </>
  );
}

function Fold({ count, columns }: { count: number; columns: number }) {
  return (
    <tr className="viz-diff-fold">
      <td colSpan={columns}>{count} unchanged lines</td>
    </tr>
  );
}

function Cell(p: { line: DiffLine | null; other: DiffLine | null; side: "left" | "right" }) {
  const { line, other, side } = p;
  if (!line) {
    return (
      <>
        <td className="viz-diff-none" />
        <td className="viz-diff-none" />
      </>
    );
  }
  const kind = line.kind === "same" ? "" : line.kind === "gone" ? "viz-diff-gone" : "viz-diff-new";
  const sign = line.kind === "same" ? " " : line.kind === "gone" ? "−" : "+";
  return (
    <>
      <td className={`viz-diff-number ${kind}`}>{side === "left" ? line.left : line.right}</td>
      <td className={`viz-diff-text ${kind}`}>
        <span className="viz-diff-sign">{sign}</span>
        <Marked line={line} other={line.kind === "same" ? null : other} />
      </td>
    </>
  );
}

/** Marks what differs within a line that was changed; not where nearly all does. */
function Marked({ line, other }: { line: DiffLine; other: DiffLine | null }) {
  if (!other) return line.text;
  const own = line.kind === "gone";
  const part = own ? within(line.text, other.text) : within(other.text, line.text);
  const end = own ? part.endA : part.endB;
  const share = (end - part.start) / Math.max(1, line.text.trim().length);
  if (end <= part.start || share > 0.7) return line.text;
  return (
    <>
      {line.text.slice(0, part.start)}
      <span className="viz-diff-mark">{line.text.slice(part.start, end)}</span>
      {line.text.slice(end)}
    </>
  );
}
