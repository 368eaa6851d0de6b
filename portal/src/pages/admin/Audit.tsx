import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { ShieldCheck } from "lucide-react";
import { api, data } from "@/api/client";
import { auditQuery } from "@/api/queries";
import type { AuditRow } from "@/api/types";
import {
  Button,
  berth,
  Checkbox,
  type Column,
  Cut,
  Drawer,
  EmptyState,
  ErrorNote,
  Facts,
  Mono,
  None,
  Note,
  SearchInput,
  Table,
  Time,
} from "@/design";
import { count } from "@/lib/format";
import { Section } from "./Layout";
import type { AdminSearch } from "./search";

const COLUMNS: Column<AuditRow>[] = [
  {
    id: "at",
    header: "When",
    cell: (r) => <Time at={r.at} as="clock" />,
    value: (r) => r.at,
    width: 110,
    fixed: true,
    narrow: "end",
  },
  {
    id: "who",
    header: "Who",
    cell: (r) => (r.who ? <Cut>{r.who}</Cut> : <None />),
    value: (r) => r.who,
    width: 120,
    narrow: "meta",
  },
  {
    id: "what",
    header: "Action",
    cell: (r) => <Mono cut>{r.what}</Mono>,
    value: (r) => r.what,
    width: 150,
    grow: 1,
    fixed: true,
    narrow: "title",
  },
  {
    id: "target",
    header: "Target",
    cell: (r) => (r.target ? <Cut>{r.target}</Cut> : <None />),
    value: (r) => r.target,
    width: 150,
    grow: 1,
    narrow: "meta",
  },
  {
    id: "outcome",
    header: "Outcome",
    cell: (r) => <Outcome row={r} />,
    value: (r) => r.outcome,
    width: 160,
    narrow: "hide",
  },
  {
    id: "from",
    header: "From",
    cell: (r) => <code className="text-12">{r.from}</code>,
    value: (r) => r.from,
    width: 120,
    narrow: "hide",
  },
  {
    id: "seq",
    header: "Row",
    cell: (r) => count(r.seq),
    value: (r) => r.seq,
    width: 72,
    align: "right",
    hidden: true,
    narrow: "hide",
  },
];

function Outcome({ row }: { row: AuditRow }) {
  if (row.outcome === "ok") return <span className="text-muted">done</span>;
  return <Cut className="text-bad">{`✕ ${row.outcome}`}</Cut>;
}

/** Who did what, and whether the log is whole. */
export function Audit({
  search,
  onSearch,
}: {
  search: AdminSearch;
  onSearch: (to: AdminSearch) => void;
}) {
  const { who, what, refused, open } = search;
  const filter = {
    ...(who && { who }),
    ...(what && { what }),
    ...(refused && { refused: true }),
    limit: 200,
  };
  const pages = useInfiniteQuery(auditQuery(filter));
  const verify = useQuery({
    queryKey: ["audit-verify"],
    queryFn: ({ signal }) => data(api.GET("/v1/audit/verify", { signal })),
    enabled: false,
  });
  const rows = pages.data?.pages.flatMap((page) => page.rows);
  const row = rows?.find((r) => r.seq === open);
  return (
    <Section
      id="audit"
      command={berth("audit list", { "--who": who, "--what": what, "--refused": refused })}
      fill
      actions={
        <Button icon={ShieldCheck} busy={verify.isFetching} onClick={() => void verify.refetch()}>
          Verify
        </Button>
      }
    >
      {(verify.data || verify.error) && (
        <div className="px-3 pt-3" aria-live="polite">
          {verify.error ? (
            <ErrorNote error={verify.error} />
          ) : (
            verify.data && <Verified found={verify.data} />
          )}
        </div>
      )}
      <Table
        id="admin-audit"
        label="Audit log"
        columns={COLUMNS}
        rows={rows}
        rowId={(r) => String(r.seq)}
        error={pages.error ?? undefined}
        onRetry={() => void pages.refetch()}
        csv="audit"
        open={open === undefined ? undefined : String(open)}
        onOpen={(r) => onSearch({ open: r.seq })}
        more={{
          has: pages.hasNextPage,
          loading: pages.isFetchingNextPage,
          load: () => void pages.fetchNextPage(),
        }}
        toolbar={
          <>
            <SearchInput
              label="Who"
              value={who}
              onChange={(to) => onSearch({ who: to || undefined })}
              className="w-36"
            />
            <SearchInput
              label="Action"
              slash={false}
              value={what}
              onChange={(to) => onSearch({ what: to || undefined })}
              className="w-44"
            />
            <Checkbox
              label="Refused only"
              checked={refused ?? false}
              onChange={(e) => onSearch({ refused: e.target.checked || undefined })}
            />
          </>
        }
        empty={<EmptyState title="Nothing was recorded" command="berth audit list" />}
      />
      <Drawer
        open={row !== undefined}
        onClose={() => onSearch({ open: undefined })}
        title={row ? `Row ${count(row.seq)}: ${row.what}` : ""}
      >
        {row && (
          <div className="flex flex-col gap-4 p-4">
            <Facts
              items={[
                ["When", <Time key="at" at={row.at} as="both" />],
                ["Who", row.who],
                ["From", row.from],
                ["By", row.method],
                ["Token", row.token ? <Mono key="token">{row.token}</Mono> : <None key="token" />],
                ["Action", row.what],
                ["Target", row.target || <None key="target" />],
                ["Outcome", <Outcome key="outcome" row={row} />],
              ]}
            />
            {row.detail && (
              <pre className="overflow-x-auto rounded-md border border-line bg-surface p-3 font-mono text-12">
                {pretty(row.detail)}
              </pre>
            )}
            <Facts
              items={[
                [
                  "Hash",
                  <Mono key="hash" cut>
                    {row.hash}
                  </Mono>,
                ],
                [
                  "Before it",
                  <Mono key="prev" cut>
                    {row.prev}
                  </Mono>,
                ],
              ]}
            />
          </div>
        )}
      </Drawer>
    </Section>
  );
}

function Verified({ found }: { found: Awaited<ReturnType<typeof verified>> }) {
  if (found.broken_at != null)
    return (
      <Note tone="warn">
        Row {count(found.broken_at)} does not follow from the rows before it: the log was changed.
        The rows up to there are whole.
      </Note>
    );
  const rights = found.rights ?? [];
  if (rights.length > 0)
    return (
      <Note tone="warn">
        The log is whole, but these were changed without the server: {rights.join(", ")}.
      </Note>
    );
  return (
    <Note>
      All {count(found.rows)} rows follow from one another. Head{" "}
      <code className="text-12">{found.head.slice(0, 16)}</code>: keep it elsewhere to notice a log
      that was cut off.
    </Note>
  );
}

const verified = () => data(api.GET("/v1/audit/verify"));

function pretty(detail: string): string {
  try {
    return JSON.stringify(JSON.parse(detail), null, 2);
  } catch {
    return detail;
  }
}
