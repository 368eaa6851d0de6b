import { useInfiniteQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { jobsQuery, rowsOf } from "@/api/queries";
import type { Job } from "@/api/types";
import {
  type Column,
  Cut,
  EmptyState,
  Money,
  None,
  Panel,
  Span,
  StateBadge,
  Table,
  TextLink,
} from "@/design";

const COLUMNS: Column<Job>[] = [
  {
    id: "id",
    header: "Element",
    width: 90,
    fixed: true,
    narrow: "title",
    cell: (j) => (
      <TextLink to="/jobs/$job" params={{ job: j.id }}>
        {j.id}
      </TextLink>
    ),
    value: (j) => j.id,
  },
  {
    id: "state",
    header: "State",
    width: 110,
    narrow: "end",
    cell: (j) => <StateBadge state={j.state} />,
    value: (j) => j.state,
  },
  {
    id: "parameters",
    header: "Parameters",
    width: 160,
    grow: 2,
    narrow: "meta",
    cell: (j) => {
      const text = Object.entries(j.parameters ?? {})
        .map(([k, v]) => `${k}=${v}`)
        .join(" ");
      return text ? <Cut>{text}</Cut> : <None />;
    },
    value: (j) => JSON.stringify(j.parameters ?? {}),
  },
  {
    id: "runtime",
    header: "Ran",
    width: 90,
    align: "right",
    narrow: "meta",
    cell: (j) => (j.started ? <Span from={j.started} to={j.ended ?? null} /> : <None />),
  },
  {
    id: "cost",
    header: "Cost",
    width: 90,
    align: "right",
    narrow: "hide",
    cell: (j) => <Money micros={j.cost_micros} />,
    value: (j) => j.cost_micros / 1e6,
  },
];

/** The elements of an array, each a job of its own. */
export function Elements({ job }: { job: Job }) {
  const navigate = useNavigate();
  const list = useInfiniteQuery(jobsQuery({ name: job.name, user: job.user }));
  const all = list.data
    ? rowsOf(list.data).filter((j) => j.id.startsWith(`${job.id}_`))
    : undefined;
  const long = (all?.length ?? 0) > 12;
  return (
    <Panel title="Elements" flush>
      <div className={long ? "flex h-90 flex-col" : undefined}>
        <Table
          id="job-elements"
          label="Elements"
          columns={COLUMNS}
          rows={all}
          rowId={(j) => j.id}
          error={list.error}
          onRetry={() => void list.refetch()}
          onOpen={(j) => void navigate({ to: "/jobs/$job", params: { job: j.id } })}
          more={{
            has: list.hasNextPage,
            loading: list.isFetchingNextPage,
            load: () => void list.fetchNextPage(),
          }}
          compact
          fit={!long}
          empty={<EmptyState title="No elements are kept any more" />}
        />
      </div>
    </Panel>
  );
}
