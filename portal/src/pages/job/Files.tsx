import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Download, File, FileQuestion, Folder, Link2 } from "lucide-react";
import { Fragment, useMemo, useState } from "react";
import type { Job, JobFile } from "@/api/types";
import { SaveButton } from "@/app/SaveButton";
import { saveOrSay } from "@/app/saving";
import {
  Button,
  type Column,
  CommandLine,
  Cut,
  Dialog,
  EmptyState,
  None,
  Table,
  TextLink,
  Time,
} from "@/design";
import { bytes } from "@/lib/format";
import { copyCommand, isTooLarge } from "./large-file";
import { fileAddress, filesQuery } from "./routes";

const route = getRouteApi("/jobs/$job");
const ICONS = { dir: Folder, file: File, link: Link2, other: FileQuestion } as const;

/** What it wrote, to look through and to take along. */
export default function Files({ job, path = "" }: { job: Job; path: string | undefined }) {
  const navigate = route.useNavigate();
  const files = useQuery(filesQuery(job.id, path));
  const go = (to: string) =>
    void navigate({ search: (old) => ({ ...old, path: to || undefined }) });
  const [large, setLarge] = useState<JobFile>();
  const columns = useMemo(() => columnsOf(job.id, path, setLarge), [job.id, path]);
  const rows = files.data && inOrder(files.data.entries);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <nav aria-label="Folder" className="flex flex-wrap items-center gap-1 px-4 py-3">
        {crumbs(path).map((c, i, all) => (
          <Fragment key={c.path}>
            {i > 0 && <span className="text-faint">/</span>}
            {i === all.length - 1 ? (
              <span className="font-medium" aria-current="page">
                {c.name}
              </span>
            ) : (
              <TextLink from="/jobs/$job" search={(old) => ({ ...old, path: c.path || undefined })}>
                {c.name}
              </TextLink>
            )}
          </Fragment>
        ))}
        {files.data?.more && (
          <span className="ml-auto text-12 text-muted">
            There are more files than are listed here.
          </span>
        )}
      </nav>
      <Table
        id="job-files"
        label="Files"
        columns={columns}
        rows={rows}
        rowId={(e) => e.name}
        error={files.error}
        onRetry={() => void files.refetch()}
        stale={files.isPlaceholderData}
        onOpen={(e) => {
          if (e.kind === "dir") go(joined(path, e.name));
          else if (e.kind !== "file") return;
          else if (isTooLarge(e.bytes)) setLarge(e);
          else void saveOrSay(fileAddress(job.id, joined(path, e.name)), e.name);
        }}
        empty={
          <EmptyState title={path ? "This folder is empty" : "It has written no files yet"}>
            What a job writes to its own folder and its checkpoints shows up here.
          </EmptyState>
        }
      />
      <Dialog
        open={large !== undefined}
        onClose={() => setLarge(undefined)}
        title={large?.name ?? ""}
        description={`${bytes(large?.bytes ?? 0)} is too much for a browser. Copy the file with the command line.`}
      >
        <div className="rounded-md border border-line bg-surface">
          <CommandLine command={copyCommand(job.id, joined(path, large?.name ?? ""))} />
        </div>
      </Dialog>
    </div>
  );
}

function columnsOf(job: string, path: string, onLarge: (file: JobFile) => void): Column<JobFile>[] {
  return [
    {
      id: "name",
      header: "Name",
      width: 200,
      grow: 3,
      fixed: true,
      narrow: "title",
      value: (e) => e.name,
      cell: (e) => {
        const Icon = ICONS[e.kind];
        return (
          <span className="flex min-w-0 items-center gap-2">
            <Icon
              size={14}
              className="shrink-0 text-muted"
              aria-label={e.kind === "dir" ? "folder" : e.kind}
            />
            {e.kind === "dir" ? (
              <TextLink
                from="/jobs/$job"
                search={(old) => ({ ...old, path: joined(path, e.name) })}
                className="min-w-0 text-fg!"
              >
                <Cut>{e.name}</Cut>
              </TextLink>
            ) : (
              <Cut>{e.name}</Cut>
            )}
          </span>
        );
      },
    },
    {
      id: "size",
      header: "Size",
      width: 100,
      align: "right",
      narrow: "end",
      value: (e) => e.bytes,
      cell: (e) => (e.kind === "dir" ? <None /> : bytes(e.bytes)),
    },
    {
      id: "modified",
      header: "Changed",
      width: 140,
      align: "right",
      narrow: "meta",
      value: (e) => e.modified_at,
      cell: (e) => <Time at={e.modified_at} />,
    },
    {
      id: "download",
      header: "Download",
      width: 88,
      align: "right",
      narrow: "end",
      cell: (e) =>
        e.kind !== "file" ? null : isTooLarge(e.bytes) ? (
          <Button look="quiet" size="sm" icon={Download} iconOnly onClick={() => onLarge(e)}>
            Download
          </Button>
        ) : (
          <SaveButton
            look="quiet"
            size="sm"
            icon={Download}
            iconOnly
            at={fileAddress(job, joined(path, e.name))}
            file={e.name}
          >
            Download
          </SaveButton>
        ),
    },
  ];
}

export function joined(path: string, name: string): string {
  return path ? `${path.replace(/\/+$/, "")}/${name}` : name;
}

export function crumbs(path: string): { name: string; path: string }[] {
  const parts = path.split("/").filter(Boolean);
  return [
    { name: "output", path: "" },
    ...parts.map((name, i) => ({ name, path: parts.slice(0, i + 1).join("/") })),
  ];
}

function inOrder(entries: readonly JobFile[]): JobFile[] {
  const rank = (e: JobFile) => (e.kind === "dir" ? 0 : 1);
  return [...entries].sort(
    (a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, "en", { numeric: true }),
  );
}
