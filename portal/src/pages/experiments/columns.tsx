import type { ReactNode } from "react";
import { type Column, Cut, None, Span, StateBadge, TextLink, Time } from "@/design";
import { labelOf, metricText, numberAt, type Row, split, statusOf, textAt } from "./model/row";

/** The table draws all its columns, so their number has a limit. */
export const MOST_COLUMNS = 40;

const NAME: Column<Row> = {
  id: "name",
  header: "Run",
  width: 180,
  grow: 3,
  fixed: true,
  sort: "name",
  narrow: "title",
  value: (r) => r.name,
  cell: (r) => (
    <TextLink to="/runs/$run" params={{ run: r.id }} className="min-w-0 font-medium text-fg!">
      <Cut>{r.name}</Cut>
    </TextLink>
  ),
};

/** The name, and a column for each of the keys. */
export function columnsOf(keys: readonly string[]): Column<Row>[] {
  const metric = keys.find((k) => k.startsWith("metrics.") && !k.startsWith("metrics.berth."));
  return [NAME, ...keys.map((key) => columnOf(key, key === metric))];
}

function columnOf(key: string, first: boolean): Column<Row> {
  const { kind, name } = split(key);
  const header = labelOf(key);
  const base = { id: key, header, sort: key, narrow: "hide" } as const;
  if (kind === "metrics")
    return {
      ...base,
      ...(first && { narrow: "end" }),
      width: Math.max(88, Math.min(180, header.length * 7 + 24)),
      align: "right",
      hint: header === name ? `Newest value of the metric ${name}` : `Metric ${name}`,
      value: (r) => r.metrics[name],
      cell: (r) => <span className="tabular-nums">{metricText(name, r.metrics[name])}</span>,
    };
  if (kind === "attributes")
    return {
      ...base,
      ...(ATTRIBUTES[name] ?? { width: 120 }),
      ...(name === "status" || name === "start" ? { narrow: "meta" as const } : {}),
      value: (r) =>
        name === "start" && r.start !== undefined
          ? new Date(r.start).toISOString()
          : (numberAt(r, key) ?? textAt(r, key)),
      cell: (r) => attribute(r, name),
    };
  return {
    ...base,
    width: Math.max(88, Math.min(200, header.length * 7 + 24)),
    grow: 1,
    hint: `${kind === "params" ? "Param" : "Tag"} ${name}`,
    value: (r) => r[kind][name],
    cell: (r) => {
      const text = r[kind][name];
      if (text === undefined) return <None />;
      if (key === "tags.berth.job")
        return (
          <TextLink to="/jobs/$job" params={{ job: text }}>
            {text}
          </TextLink>
        );
      return <Cut>{text}</Cut>;
    },
  };
}

const ATTRIBUTES: Record<string, Partial<Column<Row>> & { width: number }> = {
  status: { width: 104 },
  user: { width: 96, grow: 1 },
  start: { width: 112, align: "right", sortFirst: "desc" },
  duration: {
    width: 88,
    align: "right",
    sortFirst: "desc",
    hint: "From the start of the run to its end, or until now",
  },
  id: { width: 132, grow: 1 },
};

function attribute(r: Row, name: string): ReactNode {
  switch (name) {
    case "status": {
      const { state, word } = statusOf(r.status);
      return <StateBadge state={state} word={word} />;
    }
    case "user":
      return <Cut className="text-muted">{r.user}</Cut>;
    case "start":
      return <Time at={r.start} />;
    case "duration":
      return r.start === undefined ? (
        <None />
      ) : r.end !== undefined ? (
        <Span ms={r.end - r.start} />
      ) : (
        <Span from={new Date(r.start).toISOString()} />
      );
    default: {
      const text = textAt(r, name);
      return text === undefined ? <None /> : <code className="block truncate text-12">{text}</code>;
    }
  }
}
