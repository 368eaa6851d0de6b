import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import {
  Button,
  type Column,
  Cut,
  EmptyState,
  Mono,
  None,
  neighbour,
  SearchInput,
  sorted,
  Table,
  Time,
} from "@/design";
import { bytes, count } from "@/lib/format";
import { DataDrawer } from "./DataDrawer";
import { dataQuery } from "./data";
import type { ModelsSearch } from "./search";
import { byName, type DataVersion, dataName, fits, parentOf } from "./versions-of-data";

const COLUMNS: readonly Column<DataVersion>[] = [
  {
    id: "name",
    header: "Version",
    cell: (v) => <Cut className="font-medium">{dataName(v)}</Cut>,
    value: dataName,
    sort: "name",
    width: 170,
    grow: 2,
    fixed: true,
    narrow: "title",
  },
  {
    id: "size",
    header: "Size",
    cell: (v) => <span className="tabular-nums">{bytes(v.bytes)}</span>,
    value: (v) => v.bytes,
    sort: "size",
    sortFirst: "desc",
    width: 90,
    align: "right",
    narrow: "end",
  },
  {
    id: "files",
    header: "Files",
    cell: (v) => count(v.files),
    value: (v) => v.files,
    sort: "files",
    sortFirst: "desc",
    width: 84,
    align: "right",
    narrow: "hide",
  },
  {
    id: "parent",
    header: "Made from",
    cell: (v) => {
      const parent = parentOf(v);
      return parent ? <Cut>{parent}</Cut> : <None />;
    },
    value: (v) => parentOf(v) ?? "",
    width: 130,
    grow: 1,
    narrow: "hide",
  },
  {
    id: "by",
    header: "Made by",
    cell: (v) => <Cut>{v.by}</Cut>,
    value: (v) => v.by,
    sort: "by",
    width: 110,
    narrow: "meta",
  },
  {
    id: "created",
    header: "Made",
    cell: (v) => <Time at={v.created} />,
    value: (v) => v.created,
    sort: "created",
    sortFirst: "desc",
    width: 100,
    align: "right",
    narrow: "meta",
  },
  {
    id: "note",
    header: "Note",
    cell: (v) => (v.note ? <Cut>{v.note}</Cut> : <None />),
    value: (v) => v.note,
    width: 140,
    grow: 2,
    narrow: "hide",
  },
  {
    id: "hash",
    header: "Hash",
    cell: (v) => <Mono cut>{v.hash}</Mono>,
    value: (v) => v.hash,
    width: 200,
    hidden: true,
    narrow: "hide",
  },
];

/** The versions of data of a team, with their sizes and parents. */
export function DataTab({
  team,
  search,
  onSearch,
}: {
  team: string;
  search: ModelsSearch;
  onSearch: (change: ModelsSearch) => void;
}) {
  const data = useQuery(dataQuery(team));
  const rows = useMemo(() => {
    const found = data.data && byName(data.data).filter((v) => fits(v, search.q));
    return found && sorted(found, COLUMNS, search.sort);
  }, [data.data, search.q, search.sort]);
  const open = data.data?.find((v) => dataName(v) === search.open);
  return (
    <>
      <Table
        id="data"
        label="Versions of data"
        columns={COLUMNS}
        rows={rows}
        rowId={dataName}
        error={data.error ?? undefined}
        onRetry={() => void data.refetch()}
        stale={data.isPlaceholderData}
        sort={search.sort}
        onSort={(sort) => onSearch({ sort })}
        open={search.open}
        onOpen={(v) => onSearch({ open: dataName(v) })}
        csv="data"
        toolbar={
          <SearchInput
            label="Search data"
            placeholder="Name, user, note or hash"
            value={search.q}
            onChange={(q) => onSearch({ q: q || undefined })}
            className="w-60 max-md:w-full"
          />
        }
        empty={
          search.q ? (
            <EmptyState
              title="No version matches"
              action={<Button onClick={() => onSearch({ q: undefined })}>All data</Button>}
            />
          ) : (
            <EmptyState
              title={`Team ${team} has no versions of data yet`}
              command={`berth data push ./corpus c4@v1 --team ${team}`}
            >
              A version never changes. A job names it, <code>data: {"{/data: 'dvc:c4@v1'}"}</code>,
              and finds its files wherever it runs.
            </EmptyState>
          )
        }
      />
      <DataDrawer
        team={team}
        name={search.open}
        version={open}
        all={data.data}
        onClose={() => onSearch({ open: undefined })}
        onOpen={(name) => onSearch({ open: name })}
        onStep={(by) => {
          const next = neighbour(rows ?? [], dataName, search.open, by);
          if (next) onSearch({ open: next });
        }}
      />
    </>
  );
}
