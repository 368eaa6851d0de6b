import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { Download, File, FileQuestion, Folder, Link2 } from "lucide-react";
import { useMemo, useState } from "react";
import type { Job, JobFile } from "@/api/types";
import { downloadColumn, FolderPath, fileColumns, inOrder, joined } from "@/app/files";
import { SaveButton } from "@/app/SaveButton";
import { saveOrSay } from "@/app/saving";
import {
  Button,
  type Column,
  CommandLine,
  Dialog,
  EmptyState,
  Table,
  TextLink,
  Time,
} from "@/design";
import { bytes } from "@/lib/format";
import { copyCommand, isTooLarge } from "./large-file";
import { fileAddress, filesQuery } from "./routes";

const route = getRouteApi("/jobs/$job");
const ICONS = { dir: Folder, file: File, link: Link2, other: FileQuestion } as const;

const isFolder = (e: JobFile) => e.kind === "dir";

/** What it wrote, to look through and to take along. */
export default function Files({ job, path = "" }: { job: Job; path: string | undefined }) {
  const navigate = route.useNavigate();
  const files = useQuery(filesQuery(job.id, path));
  const go = (to: string) =>
    void navigate({ search: (old) => ({ ...old, path: to || undefined }) });
  const [large, setLarge] = useState<JobFile>();
  const columns = useMemo(() => columnsOf(job.id, path, setLarge), [job.id, path]);
  const rows = files.data && inOrder(files.data.entries, isFolder);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <FolderPath
        root="output"
        path={path}
        link={(to, name) => (
          <TextLink from="/jobs/$job" search={(old) => ({ ...old, path: to })}>
            {name}
          </TextLink>
        )}
      >
        {files.data?.more && (
          <span className="ml-auto text-12 text-muted">
            There are more files than are listed here.
          </span>
        )}
      </FolderPath>
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
    ...fileColumns<JobFile>({
      isFolder,
      kind: (e) => [ICONS[e.kind], e.kind],
      size: (e) => e.bytes,
      link: (e, name) =>
        isFolder(e) ? (
          <TextLink
            from="/jobs/$job"
            search={(old) => ({ ...old, path: joined(path, e.name) })}
            className="min-w-0 text-fg!"
          >
            {name}
          </TextLink>
        ) : (
          name
        ),
    }),
    {
      id: "modified",
      header: "Changed",
      width: 140,
      align: "right",
      narrow: "meta",
      value: (e) => e.modified_at,
      cell: (e) => <Time at={e.modified_at} />,
    },
    downloadColumn((e) =>
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
    ),
  ];
}
