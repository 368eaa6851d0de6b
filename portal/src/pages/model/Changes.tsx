import { useInfiniteQuery } from "@tanstack/react-query";
import { auditQuery } from "@/api/queries";
import { useMay } from "@/api/session";
import type { ModelVersion, RegisteredModel } from "@/api/tracking";
import { Button, ErrorNote, Note, Skeleton, Time } from "@/design";
import type { Owner } from "../models/model";
import { type Change, fromAudit, fromFields } from "./changes";

/** The changes of a model, with their users and times. */
export function Changes({
  owner,
  model,
  versions,
  onOpen,
}: {
  owner: Owner;
  model: RegisteredModel;
  versions: readonly ModelVersion[];
  onOpen: (version: string) => void;
}) {
  const may = useMay("AuditRead");
  return (
    <div className="flex max-w-180 flex-col gap-3">
      {may.ok ? (
        <Audited owner={owner} model={model} versions={versions} onOpen={onOpen} />
      ) : (
        <>
          <Note>
            This list comes from the model and its versions. The audit log has every change with its
            user, and operators may read it.
          </Note>
          <List changes={fromFields(model, versions)} versions={versions} onOpen={onOpen} />
        </>
      )}
    </div>
  );
}

function Audited({
  owner,
  model,
  versions,
  onOpen,
}: {
  owner: Owner;
  model: RegisteredModel;
  versions: readonly ModelVersion[];
  onOpen: (version: string) => void;
}) {
  const target = `model ${owner.team}/${owner.name}`;
  const audit = useInfiniteQuery(auditQuery({ target, limit: 200 }));
  if (audit.error && !audit.data)
    return (
      <>
        <ErrorNote error={audit.error} onRetry={() => void audit.refetch()} />
        <List changes={fromFields(model, versions)} versions={versions} onOpen={onOpen} />
      </>
    );
  if (!audit.data)
    return (
      <div data-skeleton aria-busy="true" className="flex flex-col gap-3">
        <Skeleton width="60%" />
        <Skeleton width="50%" />
      </div>
    );
  const rows = fromAudit(
    audit.data.pages.flatMap((page) => page.rows),
    owner.team,
    owner.name,
  );
  return (
    <>
      <List changes={rows} versions={versions} onOpen={onOpen} />
      {rows.length === 0 && (
        <p className="text-muted">
          The audit log has no rows with this name. If the model was renamed, the rows have its old
          name.
        </p>
      )}
      {audit.hasNextPage && (
        <Button busy={audit.isFetchingNextPage} onClick={() => void audit.fetchNextPage()}>
          Earlier changes
        </Button>
      )}
    </>
  );
}

function List({
  changes,
  versions,
  onOpen,
}: {
  changes: readonly Change[];
  versions: readonly ModelVersion[];
  onOpen: (version: string) => void;
}) {
  const there = new Set(versions.map((v) => v.version));
  return (
    <ol className="divide-y divide-line rounded-md border border-line bg-surface empty:hidden">
      {changes.map((c) => (
        <li key={c.id} className="flex flex-wrap items-baseline gap-x-2 px-3 py-1.5">
          <span className="min-w-0 flex-1 wrap-anywhere">
            {c.who && <bdi className="font-medium">{c.who} </bdi>}
            <bdi>{c.what}</bdi>
          </span>
          {c.version !== undefined && there.has(c.version) && (
            <Button look="quiet" size="sm" onClick={() => onOpen(c.version ?? "")}>
              Version {c.version}
            </Button>
          )}
          <span className="shrink-0 text-12 text-muted">
            <Time at={c.at} as="clock" />
          </span>
        </li>
      ))}
    </ol>
  );
}
