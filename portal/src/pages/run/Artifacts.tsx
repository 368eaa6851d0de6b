import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Download, File } from "lucide-react";
import { useMemo } from "react";
import { request } from "@/api/client";
import { type ArtifactFile, artifactAddress, listArtifacts } from "@/api/tracking";
import { downloadColumn, FolderPath, fileColumns, inOrder, joined } from "@/app/files";
import { SaveButton } from "@/app/SaveButton";
import {
  type Column,
  Drawer,
  EmptyState,
  ErrorState,
  neighbour,
  Skeleton,
  Table,
  TextLink,
} from "@/design";
import { bytes } from "@/lib/format";
import {
  curlOf,
  MEDIA,
  MOST_IMAGE,
  MOST_TEXT,
  pretty,
  previewOf,
  type RunParts,
  textOfBytes,
} from "./model";
import type { RunSearch } from "./search";

/** An entry of a folder. */
interface Entry extends ArtifactFile {
  name: string;
}

const NAME = (e: Entry) => e.name;
const isFolder = (e: Entry) => e.is_dir;

/** The artifacts of the run: folders, previews, downloads. */
export default function Artifacts({
  parts,
  search,
  set,
}: {
  parts: RunParts;
  search: RunSearch;
  set: (change: Partial<RunSearch>) => void;
}) {
  const { root } = parts;
  const run = parts.row.id;
  const path = search.path ?? "";
  const list = useQuery({
    queryKey: ["runs", "artifacts", root, path],
    queryFn: ({ signal }) => listArtifacts(joined(root, path), signal),
    placeholderData: keepPreviousData,
  });
  const rows = useMemo(() => list.data && inOrder(list.data.map(named), isFolder), [list.data]);
  const columns = useMemo(() => columnsOf(run, root, path), [run, root, path]);
  const open = search.file?.slice(path ? path.length + 1 : 0);
  const files = rows?.filter((e) => !e.is_dir) ?? [];
  const entry = rows?.find((e) => e.name === open);
  const show = (name: string) => set({ file: joined(path, name) });
  return (
    <>
      <FolderPath
        root="artifacts"
        path={path}
        link={(to, name) => (
          <TextLink to="/runs/$run" params={{ run }} search={{ tab: "artifacts", path: to }}>
            {name}
          </TextLink>
        )}
      />
      <Table
        id="run-artifacts"
        label="Artifacts"
        columns={columns}
        rows={rows}
        rowId={NAME}
        error={list.error}
        onRetry={() => void list.refetch()}
        stale={list.isPlaceholderData}
        open={open}
        onOpen={(e) =>
          e.is_dir ? set({ path: joined(path, e.name), file: undefined }) : show(e.name)
        }
        empty={
          <EmptyState
            title={path ? "This folder is empty" : "No artifacts yet"}
            command={path ? undefined : 'mlflow.log_artifact("plot.png")'}
          >
            {path ? undefined : "A script logs files, plots and models here."}
          </EmptyState>
        }
      />
      <Drawer
        open={search.file !== undefined}
        title={open ?? ""}
        subtitle={entry && bytes(entry.file_size ?? 0)}
        width={720}
        onClose={() => set({ file: undefined })}
        onStep={(by) => {
          const next = neighbour(files, NAME, open, by);
          if (next) show(next);
        }}
        command={curlOf(root, search)}
        actions={
          search.file && (
            <SaveButton
              icon={Download}
              at={artifactAddress(joined(root, search.file))}
              file={open ?? "file"}
            >
              Download
            </SaveButton>
          )
        }
      >
        {search.file && <Preview root={root} file={search.file} size={entry?.file_size} />}
      </Drawer>
    </>
  );
}

type Seen = { image: string } | { text: string; whole: boolean } | { none: string };

async function look(
  root: string,
  file: string,
  size: number | undefined,
  signal: AbortSignal,
): Promise<Seen> {
  const kind = previewOf(file);
  const at = artifactAddress(joined(root, file));
  if (kind === "none") return { none: "Berth has no preview for this type of file." };
  if (size === 0) return { none: "The file is empty." };
  if (kind === "image") {
    if ((size ?? 0) > MOST_IMAGE) return { none: "The image is too large for a preview." };
    const blob = await (await request(at, { signal })).blob();
    const type = MEDIA[file.split(".").at(-1)?.toLowerCase() ?? ""] ?? "image/png";
    return { image: await dataUrl(new Blob([blob], { type })) };
  }
  const response = await request(at, { signal, headers: { range: `bytes=0-${MOST_TEXT - 1}` } });
  const got = new Uint8Array(await response.arrayBuffer());
  const all = Number(
    /\/(\d+)$/.exec(response.headers.get("content-range") ?? "")?.[1] ?? got.length,
  );
  const whole = got.length >= all;
  const text = textOfBytes(got, whole);
  if (text === undefined) return { none: "The file is not text." };
  return { text: kind === "json" && whole ? pretty(text) : text, whole };
}

/** The content security policy allows images from data URLs only. */
function dataUrl(blob: Blob): Promise<string> {
  return new Promise((found, failed) => {
    const reader = new FileReader();
    reader.onload = () => found(String(reader.result));
    reader.onerror = () => failed(reader.error ?? new Error("The image could not be read"));
    reader.readAsDataURL(blob);
  });
}

function Preview({ root, file, size }: { root: string; file: string; size: number | undefined }) {
  const seen = useQuery({
    queryKey: ["runs", "artifact", root, file],
    queryFn: ({ signal }) => look(root, file, size, signal),
    // An artifact rarely changes, and it may be large.
    staleTime: 60_000,
    gcTime: 60_000,
  });
  if (seen.error) return <ErrorState error={seen.error} onRetry={() => void seen.refetch()} />;
  if (!seen.data) return <Skeleton height={240} />;
  if ("image" in seen.data)
    return (
      <img src={seen.data.image} alt={file} className="max-w-full rounded-md border border-line" />
    );
  if ("none" in seen.data) return <EmptyState title="No preview">{seen.data.none}</EmptyState>;
  return (
    <div className="flex flex-col gap-2">
      {!seen.data.whole && (
        <p className="text-12 text-muted">
          The preview shows the first {bytes(MOST_TEXT)}. Download the file to see the rest.
        </p>
      )}
      {/* A long line scrolls to the side, so the text takes the focus. */}
      <pre
        tabIndex={0}
        data-scrolls
        aria-label={`Preview of ${file}`}
        role="group"
        className="overflow-x-auto rounded-md border border-line bg-surface-2 p-3 font-mono text-12"
      >
        {seen.data.text}
      </pre>
    </div>
  );
}

function columnsOf(run: string, root: string, path: string): Column<Entry>[] {
  return [
    ...fileColumns<Entry>({
      isFolder,
      kind: () => [File, "file"],
      size: (e) => e.file_size,
      link: (e, name) => (
        <TextLink
          to="/runs/$run"
          params={{ run }}
          search={{
            tab: "artifacts",
            ...(isFolder(e)
              ? { path: joined(path, e.name) }
              : { path: path || undefined, file: joined(path, e.name) }),
          }}
          className="min-w-0 text-fg!"
        >
          {name}
        </TextLink>
      ),
    }),
    downloadColumn((e) =>
      isFolder(e) ? null : (
        <SaveButton
          look="quiet"
          size="sm"
          icon={Download}
          iconOnly
          at={artifactAddress(joined(root, joined(path, e.name)))}
          file={e.name}
        >
          {`Download ${e.name}`}
        </SaveButton>
      ),
    ),
  ];
}

/** The server sends paths; the list shows the last part. */
function named(file: ArtifactFile): Entry {
  return { ...file, name: file.path.replace(/\/+$/, "").split("/").at(-1) ?? file.path };
}
