import { useQuery } from "@tanstack/react-query";
import { Waypoints } from "lucide-react";
import type { ReactNode } from "react";
import {
  Button,
  berth,
  CopyButton,
  Drawer,
  ErrorNote,
  Facts,
  LinkButton,
  Mono,
  Note,
  Skeleton,
  TextLink,
  Time,
} from "@/design";
import { bytes, count, plural } from "@/lib/format";
import { lineageQuery } from "../lineage/data";
import { nameOf, neighbours, targetOf } from "../lineage/model";
import { dataDiffQuery } from "./data";
import { type DataVersion, dataName, parentOf } from "./versions-of-data";

/** One version of data: its facts, the differences from its parent, and the runs that read it. */
export function DataDrawer({
  team,
  name,
  version,
  all,
  onClose,
  onOpen,
  onStep,
}: {
  team: string;
  name: string | undefined;
  version: DataVersion | undefined;
  all: readonly DataVersion[] | undefined;
  onClose: () => void;
  onOpen: (name: string) => void;
  onStep: (by: 1 | -1) => void;
}) {
  return (
    <Drawer
      open={name !== undefined}
      onClose={onClose}
      onStep={onStep}
      title={<bdi>{name ?? ""}</bdi>}
      subtitle={version && `${bytes(version.bytes)} · ${version.team}`}
      command={berth(`data show ${name ?? ""}`, { "--team": team })}
      actions={
        version && (
          <LinkButton
            to="/lineage"
            search={{ of: `data:${dataName(version)}`, team }}
            icon={Waypoints}
            look="primary"
          >
            Lineage
          </LinkButton>
        )
      }
    >
      {version ? (
        <Inside
          key={name}
          version={version}
          made={(all ?? []).filter((v) => parentOf(v) === name && v.name === version.name)}
          onOpen={onOpen}
        />
      ) : all ? (
        <Note>
          This version does not exist. A user may have removed it, or it may belong to another team.
        </Note>
      ) : (
        <div data-skeleton aria-busy="true">
          <Skeleton width="60%" />
        </div>
      )}
    </Drawer>
  );
}

function Inside({
  version,
  made,
  onOpen,
}: {
  version: DataVersion;
  made: readonly DataVersion[];
  onOpen: (name: string) => void;
}) {
  const parent = parentOf(version);
  const other = (name: string) => (
    <Button key={name} look="quiet" size="sm" className="-ml-2" onClick={() => onOpen(name)}>
      {name}
    </Button>
  );
  return (
    <div className="flex flex-col gap-4">
      <Facts
        items={[
          ["Size", `${bytes(version.bytes)} in ${plural(version.files, "file")}`],
          ["Made", <Time key="m" at={version.created} as="both" />],
          ["By", <bdi key="b">{version.by}</bdi>],
          Boolean(version.note) && ["Note", <bdi key="n">{version.note}</bdi>],
          Boolean(parent) && ["Made from", parent && other(parent)],
          made.length > 0 && [
            "Made into",
            <span key="c" className="flex flex-wrap gap-1">
              {made.map((v) => other(dataName(v)))}
            </span>,
          ],
          ["Hash", <Mono key="h">{version.hash}</Mono>],
        ]}
      />
      {parent && <Changes version={version} parent={parent} />}
      <UsedBy version={version} />
      <Part title="In a job file">
        <JobFile text={`data: {/data: 'dvc:${dataName(version)}'}`} />
      </Part>
    </div>
  );
}

function JobFile({ text }: { text: string }) {
  return (
    <div className="flex items-center gap-2 rounded-md border border-line py-0.5 pr-1 pl-3">
      <code tabIndex={0} className="min-w-0 flex-1 overflow-x-auto whitespace-nowrap py-1 text-12">
        {text}
      </code>
      <CopyButton text={text} />
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title} className="flex flex-col gap-1">
      <h3 className="font-medium">{title}</h3>
      {children}
    </section>
  );
}

function Changes({ version, parent }: { version: DataVersion; parent: string }) {
  const diff = useQuery(dataDiffQuery(version.team, parent, dataName(version)));
  return (
    <Part title={`Against ${parent}`}>
      {diff.error ? (
        <ErrorNote error={diff.error} />
      ) : diff.data ? (
        <Facts
          items={(["added", "removed", "changed"] as const).map((kind) => [
            kind.charAt(0).toUpperCase() + kind.slice(1),
            diff.data[kind].files === 0
              ? "none"
              : `${plural(diff.data[kind].files, "file")}, ${bytes(diff.data[kind].bytes)}`,
          ])}
        />
      ) : (
        <Skeleton width="50%" />
      )}
    </Part>
  );
}

const MOST = 20;

/** The runs and jobs that read it, from the lineage. */
function UsedBy({ version }: { version: DataVersion }) {
  const found = useQuery(lineageQuery(`data:${dataName(version)}`, version.team, "down"));
  const users = found.data
    ? neighbours(found.data, found.data.of, "after").filter(
        ({ node }) => node.kind === "run" || node.kind === "job",
      )
    : [];
  return (
    <Part title="Used by">
      {found.error ? (
        <ErrorNote error={found.error} onRetry={() => void found.refetch()} />
      ) : !found.data ? (
        <Skeleton width="50%" />
      ) : users.length === 0 ? (
        <p className="text-muted">No run has read it yet.</p>
      ) : (
        <ul className="flex flex-col gap-1">
          {users.slice(0, MOST).map(({ node }) => {
            const target = targetOf(node);
            return (
              <li key={node.id} className="flex min-w-0 items-baseline gap-2">
                <span className="shrink-0 text-muted">{node.kind === "run" ? "Run" : "Job"}</span>
                {target?.to === "/jobs/$job" ? (
                  <TextLink to={target.to} params={target.params} className="min-w-0 truncate">
                    <bdi>{nameOf(node)}</bdi>
                  </TextLink>
                ) : target?.to === "/runs/$run" ? (
                  <TextLink to={target.to} params={target.params} className="min-w-0 truncate">
                    <bdi>{nameOf(node)}</bdi>
                  </TextLink>
                ) : (
                  <bdi className="min-w-0 truncate">{nameOf(node)}</bdi>
                )}
              </li>
            );
          })}
          {users.length > MOST && (
            <li className="text-muted">{count(users.length - MOST)} more in its lineage</li>
          )}
        </ul>
      )}
    </Part>
  );
}
