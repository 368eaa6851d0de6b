import { queryOptions, useQuery } from "@tanstack/react-query";
import { Ban } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { useChange } from "@/api/queries";
import type { OpenSession } from "@/api/types";
import {
  Button,
  type Column,
  Confirm,
  Cut,
  EmptyState,
  None,
  Table,
  Time,
  Tooltip,
} from "@/design";
import { browserOf } from "./browser";
import { Section } from "./Layout";

const sessionsQuery = queryOptions({
  queryKey: ["sessions"],
  queryFn: async ({ signal }) => (await data(api.GET("/v1/sessions", { signal }))).items,
  refetchInterval: 60_000,
});

/** Browsers that are signed in. */
export function Sessions() {
  const sessions = useQuery(sessionsQuery);
  const [ending, setEnding] = useState<OpenSession>();
  const end = useChange(
    (session: string) =>
      data(api.DELETE("/v1/sessions/{session}", { params: { path: { session } } })),
    "sessions",
    "session",
  );
  const columns: Column<OpenSession>[] = [
    {
      id: "user",
      header: "Person",
      cell: (s) => (
        <span className="flex min-w-0 items-center gap-2">
          <Cut>{s.user}</Cut>
          {s.current && <span className="shrink-0 text-12 text-muted">this browser</span>}
        </span>
      ),
      value: (s) => s.user,
      width: 160,
      grow: 1,
      fixed: true,
      narrow: "title",
    },
    {
      id: "means",
      header: "Signed in by",
      cell: (s) => (s.means === "oidc" ? "provider" : s.means),
      value: (s) => s.means,
      width: 100,
      narrow: "meta",
    },
    {
      id: "agent",
      header: "Browser",
      cell: (s) =>
        s.agent ? (
          <Tooltip text={s.agent}>
            <span className="block truncate">{browserOf(s.agent)}</span>
          </Tooltip>
        ) : (
          <None />
        ),
      value: (s) => s.agent,
      width: 160,
      grow: 2,
      narrow: "hide",
    },
    {
      id: "from",
      header: "From",
      cell: (s) => (s.from ? <code className="text-12">{s.from}</code> : <None />),
      value: (s) => s.from,
      width: 120,
      narrow: "meta",
    },
    {
      id: "used",
      header: "Last seen",
      cell: (s) => <Time at={s.last_used} />,
      value: (s) => s.last_used,
      width: 100,
      align: "right",
      narrow: "hide",
    },
    {
      id: "expires",
      header: "Expires",
      cell: (s) => <Time at={s.expires} />,
      value: (s) => s.expires,
      width: 100,
      align: "right",
      narrow: "hide",
    },
    {
      id: "end",
      header: "End",
      cell: (s) => (
        <Button size="sm" look="quiet" icon={Ban} iconOnly onClick={() => setEnding(s)}>
          {`End the session of ${s.user}`}
        </Button>
      ),
      width: 64,
      align: "right",
      narrow: "end",
    },
  ];
  return (
    <Section id="sessions" command="berth session list" fill>
      <Table
        id="admin-sessions"
        label="Sessions"
        columns={columns}
        rows={sessions.data}
        rowId={(s) => s.id}
        error={sessions.error ?? undefined}
        onRetry={() => void sessions.refetch()}
        empty={<EmptyState title="No browser is signed in" command="berth session list" />}
      />
      <Confirm
        open={ending !== undefined}
        onClose={() => setEnding(undefined)}
        title={`End the session of ${ending?.user}?`}
        loses={[
          { what: "The browser is signed out at once; open terminals and logs in it end" },
          {
            what: "Tokens that its user made in it are revoked with it, and those made with these",
          },
        ]}
        verb="End session"
        onConfirm={() => end.mutateAsync(ending?.id ?? "")}
      />
    </Section>
  );
}
