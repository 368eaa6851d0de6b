import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Download, File, Folder } from "lucide-react";
import { Fragment, useMemo } from "react";
import { request } from "@/api/client";
import { type ArtifactFile, artifactAddress, listArtifacts } from "@/api/tracking";
import { SaveButton } from "@/app/SaveButton";
import {
  type Column,
  Cut,
  Drawer,
  EmptyState,
  ErrorState,
  None,
  neighbour,
  Skeleton,
  Table,
  TextLink,
} from "@/design";
import { bytes } from "@/lib/format";
import { joined } from "../job/Files";
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

/** Entries of a folder with their paths below the run's artifacts. */
interface Entry extends ArtifactFile {
  name: string;
}

const NAME = (e: Entry) => e.name;

/** What the run keeps: folders, previews, downloads. */
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
  const rows = useMemo(() => list.data && inOrder(list.data), [list.data]);
  const columns = useMemo(() => columnsOf(run, root, path), [run, root, path]);
  const open = search.file?.slice(path ? path.length + 1 : 0);
  const files = rows?.filter((e) => !e.is_dir) ?? [];
  const entry = rows?.find((e) => e.name === open);
  const show = (name: string) => set({ file: joined(path, name) });
  return (
    <>
      <nav aria-label="Folder" className="flex flex-wrap items-center gap-1 px-4 py-3">
        {crumbs(path).map((c, i, all) => (
          <Fragment key={c.path}>
            {i > 0 && <span className="text-faint">/</span>}
            {i === all.length - 1 ? (
              <span className="font-medium" aria-current="page">
                {c.name}
              </span>
            ) : (
              <TextLink
                to="/runs/$run"
                params={{ run }}
                search={{ tab: "artifacts", path: c.path || undefined }}
              >
                {c.name}
              </TextLink>
            )}
          </Fragment>
        ))}
      </nav>
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
            {path ? undefined : "Files, plots and models that the script logs show up here."}
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
  if (kind === "none") return { none: "Files of this kind have no preview." };
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

/** The policy of the page lets images come from data, not from other addresses. */
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
    // A file of a run seldom changes, and can be large.
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
          The first {bytes(MOST_TEXT)}. Download the file for all of it.
        </p>
      )}
      {/* It scrolls to the side, and so takes the focus. */}
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
    {
      id: "name",
      header: "Name",
      width: 200,
      grow: 3,
      fixed: true,
      narrow: "title",
      value: NAME,
      cell: (e) => {
        const Icon = e.is_dir ? Folder : File;
        return (
          <span className="flex min-w-0 items-center gap-2">
            <Icon
              size={14}
              className="shrink-0 text-muted"
              aria-label={e.is_dir ? "folder" : "file"}
            />
            <TextLink
              to="/runs/$run"
              params={{ run }}
              search={{
                tab: "artifacts",
                ...(e.is_dir
                  ? { path: joined(path, e.name) }
                  : { path: path || undefined, file: joined(path, e.name) }),
              }}
              className="min-w-0 text-fg!"
            >
              <Cut>{e.name}</Cut>
            </TextLink>
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
      value: (e) => e.file_size,
      cell: (e) => (e.is_dir ? <None /> : bytes(e.file_size ?? 0)),
    },
    {
      id: "download",
      header: "Download",
      width: 88,
      align: "right",
      narrow: "end",
      cell: (e) =>
        e.is_dir ? null : (
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
    },
  ];
}

function crumbs(path: string): { name: string; path: string }[] {
  const parts = path.split("/").filter(Boolean);
  return [
    { name: "artifacts", path: "" },
    ...parts.map((name, i) => ({ name, path: parts.slice(0, i + 1).join("/") })),
  ];
}

function inOrder(files: readonly ArtifactFile[]): Entry[] {
  return files
    .map((f) => ({ ...f, name: f.path.replace(/\/+$/, "").split("/").at(-1) ?? f.path }))
    .sort(
      (a, b) =>
        Number(b.is_dir) - Number(a.is_dir) ||
        a.name.localeCompare(b.name, "en", { numeric: true }),
    );
}
