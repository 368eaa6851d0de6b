import { useInfiniteQuery } from "@tanstack/react-query";
import { link } from "@/api/client";
import type { CostLine } from "@/api/types";
import { SaveButton } from "@/app/SaveButton";
import {
  type Column,
  Cut,
  Drawer,
  EmptyState,
  Gpu,
  Money,
  None,
  Span,
  Table,
  TextLink,
  Time,
} from "@/design";
import { linesQuery, type Scope } from "./routes";

const COLUMNS: Column<CostLine>[] = [
  {
    id: "from",
    header: "From",
    cell: (l) => <Time at={l.from} as="clock" />,
    value: (l) => l.from,
    width: 110,
    fixed: true,
    narrow: "meta",
  },
  {
    id: "for",
    header: "Duration",
    cell: (l) => <Span from={l.from} to={l.to} />,
    value: (l) => (Date.parse(l.to) - Date.parse(l.from)) / 1000,
    width: 80,
    align: "right",
    narrow: "meta",
  },
  {
    id: "job",
    header: "Job",
    cell: (l) =>
      l.job ? (
        <TextLink to="/jobs/$job" params={{ job: String(l.job) }}>
          {String(l.job)}
        </TextLink>
      ) : (
        <None />
      ),
    value: (l) => l.job,
    width: 70,
    narrow: "title",
  },
  {
    id: "kind",
    header: "Kind",
    cell: (l) => l.kind,
    value: (l) => l.kind,
    width: 90,
    narrow: "meta",
  },
  {
    id: "node",
    header: "Node",
    cell: (l) => <Cut>{l.node}</Cut>,
    value: (l) => l.node,
    width: 90,
    grow: 1,
    narrow: "hide",
  },
  {
    id: "gpus",
    header: "GPUs",
    cell: (l) => <Gpu milli={l.gpus_milli} />,
    value: (l) => l.gpus_milli / 1000,
    width: 80,
    align: "right",
    narrow: "hide",
  },
  {
    id: "amount",
    header: "Amount",
    cell: (l) => <Money micros={l.amount_micros} />,
    value: (l) => l.amount_micros / 1e6,
    width: 100,
    align: "right",
    narrow: "end",
  },
];

/** The rows behind a number. */
export function Rows({
  title,
  scope,
  onClose,
}: {
  title: string;
  scope: Scope | undefined;
  onClose: () => void;
}) {
  const query = useInfiniteQuery({
    ...linesQuery(scope ?? { from: "" }),
    enabled: scope !== undefined,
  });
  const rows = query.data?.pages.flatMap((page) => page.rows);
  return (
    <Drawer
      open={scope !== undefined}
      onClose={onClose}
      title={title}
      subtitle="The rows that this amount is made of"
      width={720}
      actions={
        scope && (
          <SaveButton
            size="sm"
            at={link("/v1/cost/rows", { query: { ...scope, limit: 1000, format: "csv" } })}
            file="cost-rows.csv"
          >
            CSV
          </SaveButton>
        )
      }
    >
      <div className="flex h-full min-h-0 flex-col">
        <Table
          id="cost-rows"
          label="Rows of the bill"
          columns={COLUMNS}
          rows={rows}
          rowId={(l) => `${l.from}/${l.node}/${l.job ?? ""}/${l.task ?? ""}/${l.kind}`}
          error={query.error ?? undefined}
          onRetry={() => void query.refetch()}
          compact
          more={{
            has: query.hasNextPage,
            loading: query.isFetchingNextPage,
            load: () => void query.fetchNextPage(),
          }}
          empty={
            <EmptyState title="No rows are kept of this time">
              What is older has become one sum for each day.
            </EmptyState>
          }
        />
      </div>
    </Drawer>
  );
}
