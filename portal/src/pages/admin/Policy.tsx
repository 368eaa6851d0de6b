import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useState } from "react";
import { api, data } from "@/api/client";
import { asApiError } from "@/api/error";
import { policyQuery, useChange } from "@/api/queries";
import { useMayFor } from "@/api/session";
import type { Change } from "@/api/types";
import {
  Button,
  type Column,
  Confirm,
  Cut,
  EmptyState,
  ErrorNote,
  Facts,
  Mono,
  None,
  Note,
  Panel,
  Skeleton,
  Table,
  toast,
} from "@/design";
import { plural } from "@/lib/format";
import { CodeEditor, type Diagnostic } from "@/viz/code-editor";
import { Section } from "./Layout";

const COLUMNS: Column<Change>[] = [
  {
    id: "what",
    header: "What",
    cell: (c) => <Cut>{`${c.kind} ${c.name}`}</Cut>,
    value: (c) => `${c.kind} ${c.name}`,
    width: 150,
    grow: 1,
    fixed: true,
    narrow: "title",
  },
  {
    id: "path",
    header: "Field",
    cell: (c) => (c.path ? <Mono cut>{c.path}</Mono> : "the whole"),
    value: (c) => c.path,
    width: 130,
    grow: 1,
    narrow: "meta",
  },
  {
    id: "change",
    header: "Change",
    cell: (c) => ({ add: "+ add", change: "~ change", remove: "− remove" })[c.change],
    value: (c) => c.change,
    width: 90,
    narrow: "end",
  },
  {
    id: "old",
    header: "Now",
    cell: (c) => (c.old == null ? <None /> : <Mono cut>{c.old}</Mono>),
    value: (c) => c.old,
    width: 130,
    grow: 1,
    narrow: "hide",
  },
  {
    id: "new",
    header: "Then",
    cell: (c) => (c.new == null ? <None /> : <Mono cut>{c.new}</Mono>),
    value: (c) => c.new,
    width: 130,
    grow: 1,
    narrow: "meta",
  },
];

/** How the cluster is set up, as documents: what would change is shown before it is applied. */
export function PolicyAndQueues() {
  const may = useMayFor();
  const manages = may("PolicyManage");
  const reads = may("WorldRead");
  const policy = useQuery(policyQuery);
  return (
    <Section id="policy" command="berth diff -f cluster/">
      <div className="flex flex-col gap-4">
        <Panel title="Policy">
          {policy.error && <ErrorNote error={policy.error} onRetry={() => void policy.refetch()} />}
          {policy.isPending && <Skeleton height={60} />}
          {policy.data && (
            <div className="grid items-start gap-x-8 gap-y-1.5 lg:grid-cols-2 xl:grid-cols-3">
              {inThree(Object.entries(policy.data.knobs)).map((knobs) => (
                <Facts
                  key={knobs[0]?.[0]}
                  items={knobs.map(([knob, value]) => [
                    knob,
                    <span key={knob}>
                      <code className="text-12">{value}</code>
                      {policy.data.changed.includes(knob) && (
                        <span className="ml-2 text-12 text-muted">changed</span>
                      )}
                    </span>,
                  ])}
                />
              ))}
            </div>
          )}
        </Panel>
        {manages.ok && reads.ok ? (
          <Documents />
        ) : (
          <Note>
            {manages.reason ?? reads.reason} You see the policy, and cannot change it here.
          </Note>
        )}
      </div>
    </Section>
  );
}

/** Read downwards, one column after the other. */
function inThree<T>(all: readonly T[]): T[][] {
  const tall = Math.ceil(all.length / 3);
  return [0, 1, 2].map((i) => all.slice(i * tall, (i + 1) * tall)).filter((c) => c.length > 0);
}

function Documents() {
  const world = useQuery({
    queryKey: ["world"],
    queryFn: ({ signal }) => data(api.GET("/v1/world", { signal })),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [text, setText] = useState<string>();
  useEffect(() => {
    if (!world.data || text !== undefined) return;
    const state = world.data.text;
    // The reader of YAML is large, and nothing else here needs it.
    void import("./documents").then(({ documentsOf }) => setText(documentsOf(state)));
  }, [world.data, text]);
  const [asking, setAsking] = useState(false);
  const [shown, setShown] = useState<string>();
  const diff = useChange((documents: string) =>
    data(api.POST("/v1/diff", { body: { documents } })),
  );
  const apply = useChange(
    (documents: string) => data(api.POST("/v1/apply", { body: { documents } })),
    "policy",
    "queues",
    "shares",
    "teams",
    "projects",
    "budgets",
    "world",
  );
  const show = () => {
    if (text === undefined) return;
    setShown(text);
    diff.mutate(text);
  };
  const marks: Diagnostic[] = diff.error
    ? asApiError(diff.error)
        .fields.filter((field) => field.line)
        .map((field) => ({
          line: field.line ?? 1,
          column: field.column ?? 1,
          message: field.message,
          severity: "error",
        }))
    : [];
  const changes = shown === text ? diff.data?.changes : undefined;
  const removed = changes?.filter((c) => c.change === "remove" && c.path === "") ?? [];
  return (
    <>
      <Panel
        title="Change policy and queues"
        actions={
          <>
            <Button
              size="sm"
              look="quiet"
              onClick={() => {
                setText(undefined);
                diff.reset();
                void world.refetch();
              }}
            >
              Reset
            </Button>
            <Button size="sm" busy={diff.isPending} onClick={show}>
              Show changes
            </Button>
            <Button
              size="sm"
              look="primary"
              disabled={!changes?.length}
              onClick={() => setAsking(true)}
            >
              Apply
            </Button>
          </>
        }
      >
        {world.error ? (
          <ErrorNote error={world.error} onRetry={() => void world.refetch()} />
        ) : text === undefined ? (
          <Skeleton height={300} />
        ) : (
          <Suspense fallback={<Skeleton height={300} />}>
            <CodeEditor
              title="Documents"
              value={text}
              onChange={setText}
              diagnostics={marks}
              height={360}
              onSubmit={show}
            />
          </Suspense>
        )}
        {diff.error && (
          <div className="mt-3">
            <ErrorNote error={diff.error} />
          </div>
        )}
      </Panel>
      {changes && (
        <Panel title={changes.length ? plural(changes.length, "change") : "No change"} flush>
          <Table
            id="admin-diff"
            label="Changes"
            columns={COLUMNS}
            rows={changes}
            rowId={(c) => `${c.kind}/${c.name}/${c.path}`}
            fit
            empty={<EmptyState title="Everything is already so" />}
          />
        </Panel>
      )}
      <Confirm
        open={asking}
        onClose={() => setAsking(false)}
        title={`Apply ${plural(changes?.length ?? 0, "change")}?`}
        loses={removed.map((c) => ({ what: `${c.kind} ${c.name} is removed` }))}
        harmless={removed.length === 0}
        verb="Apply"
        onConfirm={async () => {
          if (shown === undefined) return;
          await apply.mutateAsync(shown);
          diff.reset();
          setText(undefined);
          await world.refetch();
          toast("Applied. The next plan goes by it.");
        }}
      >
        The next plan goes by it. It may stop jobs that a smaller quota no longer covers.
      </Confirm>
    </>
  );
}
