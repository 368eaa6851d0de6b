import type { Job } from "@/api/types";
import type { Filter } from "@/design";
import { type Column, Cut, Money, None, Span, StateBadge, TextLink, Time } from "@/design";
import { count, gpus } from "@/lib/format";
import { sentence } from "../job/why";
import { lasting, lastUse, Muted, ran, Start, Use } from "./cells";

export const COLUMNS: readonly Column<Job>[] = [
  {
    id: "state",
    header: "State",
    width: 98,
    sort: "state",
    narrow: "meta",
    value: (j) => j.state,
    cell: (j) => (
      <StateBadge state={j.state === "pending" && j.reason_code === "held" ? "held" : j.state} />
    ),
  },
  {
    id: "id",
    header: "Job",
    width: 76,
    sort: "id",
    sortFirst: "desc",
    narrow: "hide",
    value: (j) => j.id,
    cell: (j) => <span className="text-muted tabular-nums">{j.id}</span>,
  },
  {
    id: "name",
    header: "Name",
    width: 134,
    grow: 5,
    sort: "name",
    fixed: true,
    narrow: "title",
    value: (j) => j.name,
    cell: (j) => (
      <TextLink to="/jobs/$job" params={{ job: j.id }} className="text-fg! font-medium">
        <Cut>{j.name}</Cut>
      </TextLink>
    ),
  },
  {
    id: "user",
    header: "User",
    width: 88,
    grow: 1,
    narrow: "meta",
    value: (j) => j.user,
    cell: (j) => <Cut className="text-muted">{j.user}</Cut>,
  },
  {
    id: "team",
    header: "Team",
    width: 72,
    grow: 1,
    yields: 2,
    narrow: "hide",
    value: (j) => j.team,
    cell: (j) => <Cut className="text-muted">{j.team}</Cut>,
  },
  {
    id: "gpus",
    header: "GPUs",
    width: 58,
    align: "right",
    sort: "gpus",
    sortFirst: "desc",
    narrow: "meta",
    value: (j) => (j.gpus_milli > 0 ? j.gpus_milli / 1000 : null),
    cell: (j) =>
      j.gpus_milli > 0 ? (
        <>
          {gpus(j.gpus_milli)}
          {/* Where no head says what the number is. */}
          <span className="hidden in-data-narrow:inline">
            {j.gpus_milli === 1000 ? " GPU" : " GPUs"}
          </span>
        </>
      ) : (
        <None />
      ),
  },
  {
    id: "use",
    header: "GPU use",
    width: 92,
    yields: 3,
    narrow: "hide",
    hint: "Mean utilization of its GPUs in the last 30 minutes",
    value: (j) => lastUse(j),
    cell: (j) => <Use job={j} />,
  },
  {
    id: "eta",
    header: "Start",
    width: 124,
    align: "right",
    sort: "eta",
    narrow: "hide",
    hint: "When it started; of one that waits, when it will have in half of all cases, and in nine of ten. Sorted, only those that wait are listed.",
    value: (j) => (j.state === "pending" ? j.eta : j.started),
    cell: (j) => <Start job={j} />,
  },
  {
    id: "runtime",
    header: "Duration",
    width: 80,
    align: "right",
    narrow: "meta",
    hint: "How long it ran; of one that never did or waits again, how long it waits",
    value: (j) => {
      const [from, to] = lasting(j);
      return Math.round((Date.parse(to ?? new Date().toISOString()) - Date.parse(from)) / 1000);
    },
    cell: (j) => {
      const [from, to] = lasting(j);
      return (
        <span className={ran(j) ? undefined : "text-muted"}>
          <Span from={from} to={to} />
        </span>
      );
    },
  },
  {
    id: "priority",
    header: "Priority",
    width: 64,
    yields: 1,
    align: "right",
    sort: "priority",
    sortFirst: "desc",
    hint: "Priority: higher ones go first",
    narrow: "hide",
    value: (j) => j.priority,
    cell: (j) => <Muted>{j.priority}</Muted>,
  },
  {
    id: "cost",
    header: "Cost",
    width: 84,
    align: "right",
    sort: "cost",
    sortFirst: "desc",
    narrow: "end",
    hint: "So far",
    value: (j) => j.cost_micros / 1e6,
    cell: (j) => <Money micros={j.cost_micros} />,
  },
  {
    id: "why",
    header: "Why",
    width: 240,
    grow: 6,
    narrow: "hide",
    hint: "Why it waits, or how it ended",
    value: (j) => j.reason,
    cell: (j) =>
      // That a job is done its state says.
      j.reason && j.reason !== j.state ? (
        <Cut className="text-muted">{sentence(j.reason, Date.now()).replaceAll("`", "")}</Cut>
      ) : null,
  },
  {
    id: "submitted",
    header: "Submitted",
    width: 108,
    align: "right",
    sort: "submitted",
    sortFirst: "desc",
    hidden: true,
    narrow: "hide",
    value: (j) => j.submitted,
    cell: (j) => (
      <Muted>
        <Time at={j.submitted} />
      </Muted>
    ),
  },
  {
    id: "asks",
    header: "Asks for",
    width: 120,
    grow: 1,
    hidden: true,
    narrow: "hide",
    value: (j) => j.asks,
    cell: (j) => <Cut>{j.asks}</Cut>,
  },
  {
    id: "on",
    header: "Nodes",
    width: 100,
    grow: 1,
    hidden: true,
    narrow: "hide",
    value: (j) => j.on.join(" "),
    cell: (j) => (j.on.length > 0 ? <Cut className="text-muted">{j.on.join(", ")}</Cut> : <None />),
  },
  {
    id: "attempts",
    header: "Attempts",
    width: 80,
    align: "right",
    hidden: true,
    narrow: "hide",
    value: (j) => j.attempts,
    cell: (j) => <Muted>{count(j.attempts)}</Muted>,
  },
  {
    id: "project",
    header: "Project",
    width: 100,
    grow: 1,
    hidden: true,
    narrow: "hide",
    value: (j) => j.project,
    cell: (j) => <Cut className="text-muted">{j.project}</Cut>,
  },
  {
    id: "experiment",
    header: "Experiment",
    width: 100,
    grow: 1,
    hidden: true,
    narrow: "hide",
    value: (j) => j.experiment,
    cell: (j) => (j.experiment ? <Cut className="text-muted">{j.experiment}</Cut> : <None />),
  },
  {
    id: "held",
    header: "Price",
    width: 88,
    align: "right",
    hidden: true,
    narrow: "hide",
    value: (j) => (j.price_micros_per_hour ?? 0) / 1e6,
    cell: (j) => <Money micros={j.price_micros_per_hour} rate />,
  },
];

export const FILTERS: readonly Filter[] = [
  { key: "user", label: "User" },
  { key: "project", label: "Project" },
  { key: "experiment", label: "Experiment" },
  {
    key: "since",
    label: "Submitted since",
    options: [
      { value: "1h", label: "An hour" },
      { value: "1d", label: "A day" },
      { value: "7d", label: "A week" },
      { value: "30d", label: "30 days" },
    ],
  },
];
