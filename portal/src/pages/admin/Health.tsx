import { useQuery } from "@tanstack/react-query";
import { api, data } from "@/api/client";
import { configQuery, nodesQuery, readyQuery, useChange, versionQuery } from "@/api/queries";
import { useMayFor } from "@/api/session";
import type { ConfigEntry } from "@/api/types";
import {
  Button,
  type Column,
  Cut,
  EmptyState,
  ErrorNote,
  Facts,
  Mono,
  Note,
  Panel,
  Skeleton,
  Table,
} from "@/design";
import { bytes, plural } from "@/lib/format";
import { Section } from "./Layout";

const COLUMNS: Column<ConfigEntry>[] = [
  {
    id: "key",
    header: "Setting",
    cell: (e) => <Mono cut>{e.key}</Mono>,
    value: (e) => e.key,
    width: 180,
    grow: 1,
    fixed: true,
    narrow: "title",
  },
  {
    id: "value",
    header: "Value",
    cell: (e) => <Cut>{e.value}</Cut>,
    value: (e) => e.value,
    width: 200,
    grow: 2,
    narrow: "meta",
  },
  {
    id: "source",
    header: "From",
    cell: (e) => <Cut>{e.source}</Cut>,
    value: (e) => e.source,
    width: 180,
    narrow: "end",
  },
];

/** Whether the server does well, and how it is set up. */
export function Health() {
  const ready = useQuery(readyQuery);
  const version = useQuery(versionQuery);
  const nodes = useQuery(nodesQuery);
  const may = useMayFor();
  const reads = may("ConfigRead");
  const config = useQuery({ ...configQuery, enabled: reads.ok });
  const backups = may("Backup");
  const backup = useChange(() => data(api.POST("/v1/backup")));
  const sick = nodes.data?.filter((node) => ["failed", "troubled"].includes(node.state));
  return (
    <Section id="health" command="berth config server">
      <div className="grid gap-4 lg:grid-cols-2 xl:grid-cols-3">
        <Panel title="Server">
          {ready.error ? (
            <ErrorNote error={ready.error} onRetry={() => void ready.refetch()} />
          ) : ready.data ? (
            <Facts
              items={[
                ["Requests", ready.data.ok ? <Fine key="ok">accepted</Fine> : "✕ refused"],
                ["Version", version.data?.version ?? "–"],
                ...Object.entries(ready.data.parts).map(
                  ([part, state]) =>
                    [
                      part.charAt(0).toUpperCase() + part.slice(1),
                      state ? state : <Fine key={part}>works</Fine>,
                    ] as const,
                ),
              ]}
            />
          ) : (
            <Skeleton height={60} />
          )}
        </Panel>
        <Panel title="Nodes">
          {nodes.error && <ErrorNote error={nodes.error} />}
          {sick?.length === 0 && (
            <p className="text-muted">
              ✓ {plural(nodes.data?.length ?? 0, "node")}, none of them in trouble.
            </p>
          )}
          <ul className="flex flex-col gap-2">
            {sick?.map((node) => (
              <li key={node.name}>
                <Note tone="warn">
                  <span aria-hidden className="text-bad">
                    ✕
                  </span>{" "}
                  {node.name} {node.state === "failed" ? "has failed" : "is in trouble"}
                  {node.trouble ? `: ${node.trouble}` : "."}
                </Note>
              </li>
            ))}
          </ul>
        </Panel>
        <Panel
          title="Backup"
          actions={
            <Button
              size="sm"
              busy={backup.isPending}
              denied={backups.reason}
              onClick={() => backup.mutate(undefined)}
            >
              Back up now
            </Button>
          }
        >
          {backup.error ? (
            <ErrorNote error={backup.error} />
          ) : backup.data ? (
            <p className="wrap-anywhere">
              ✓ {bytes(backup.data.bytes)} in <code className="text-12">{backup.data.path}</code> on
              the machine of the server.
            </p>
          ) : (
            <p className="text-muted">
              Copies the database while the server runs. To back up on a schedule, run{" "}
              <code className="text-12">berth backup</code> from cron.
            </p>
          )}
        </Panel>
      </div>
      <div className="mt-4">
        <Panel title="Settings" flush>
          {reads.ok ? (
            <Table
              id="admin-config"
              label="Settings of the server"
              columns={COLUMNS}
              rows={config.data}
              rowId={(e) => e.key}
              error={config.error ?? undefined}
              onRetry={() => void config.refetch()}
              fit
              compact
              empty={<EmptyState title="No settings" />}
            />
          ) : (
            <p className="p-3 text-muted">{reads.reason}</p>
          )}
        </Panel>
      </div>
    </Section>
  );
}

function Fine({ children }: { children: string }) {
  return (
    <>
      <span aria-hidden className="text-good">
        ✓
      </span>{" "}
      {children}
    </>
  );
}
