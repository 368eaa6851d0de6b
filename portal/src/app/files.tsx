// What lists of files share: those of a job and those of a run.
import { Folder, type LucideIcon } from "lucide-react";
import { Fragment, type ReactNode } from "react";
import { type Column, Cut, None } from "@/design";
import { bytes } from "@/lib/format";

export function joined(path: string, name: string): string {
  return path ? `${path.replace(/\/+$/, "")}/${name}` : name;
}

/** Where the user is among the folders. `link` leads to one of them; the root has no path. */
export function FolderPath({
  root,
  path,
  link,
  children,
}: {
  root: string;
  path: string;
  link: (path: string | undefined, name: string) => ReactNode;
  /** At the right. */
  children?: ReactNode;
}) {
  const parts = path.split("/").filter(Boolean);
  const folders = [
    { name: root, path: "" },
    ...parts.map((name, i) => ({ name, path: parts.slice(0, i + 1).join("/") })),
  ];
  return (
    <nav aria-label="Folder" className="flex flex-wrap items-center gap-1 px-4 py-3">
      {folders.map((folder, i) => (
        <Fragment key={folder.path}>
          {i > 0 && <span className="text-faint">/</span>}
          {i === folders.length - 1 ? (
            <span className="font-medium" aria-current="page">
              {folder.name}
            </span>
          ) : (
            link(folder.path || undefined, folder.name)
          )}
        </Fragment>
      ))}
      {children}
    </nav>
  );
}

/** Folders first, then by name. */
export function inOrder<T extends { name: string }>(
  entries: readonly T[],
  isFolder: (entry: T) => boolean,
): T[] {
  return [...entries].sort(
    (a, b) =>
      Number(isFolder(b)) - Number(isFolder(a)) ||
      a.name.localeCompare(b.name, "en", { numeric: true }),
  );
}

/** The columns with which each list of files begins. */
export function fileColumns<T extends { name: string }>({
  isFolder,
  kind,
  size,
  link,
}: {
  isFolder: (entry: T) => boolean;
  /** The icon of what is no folder, and its name. */
  kind: (entry: T) => readonly [icon: LucideIcon, word: string];
  size: (entry: T) => number | undefined;
  /** The name as a link, where it leads somewhere. */
  link: (entry: T, name: ReactNode) => ReactNode;
}): Column<T>[] {
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
        const [Icon, word] = isFolder(e) ? ([Folder, "folder"] as const) : kind(e);
        return (
          <span className="flex min-w-0 items-center gap-2">
            <Icon size={14} className="shrink-0 text-muted" aria-label={word} />
            {link(e, <Cut>{e.name}</Cut>)}
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
      value: size,
      cell: (e) => (isFolder(e) ? <None /> : bytes(size(e) ?? 0)),
    },
  ];
}

/** The column that downloads a file. */
export function downloadColumn<T>(cell: (entry: T) => ReactNode): Column<T> {
  return { id: "download", header: "Download", width: 88, align: "right", narrow: "end", cell };
}
