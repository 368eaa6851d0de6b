import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { registeredModelsQuery } from "@/api/tracking";
import { Button, CommandLine, Cut, Input, Panel, Select, Skeleton, Time } from "@/design";
import { dataQuery } from "../models/data";
import { newest, sharedBy } from "../models/model";
import { dataName } from "../models/versions-of-data";

const KINDS = [
  { value: "model", label: "Model", like: "chat@3 or chat@champion" },
  { value: "run", label: "Run", like: "the id of a run" },
  { value: "data", label: "Data", like: "c4@v3" },
  { value: "job", label: "Job", like: "17" },
] as const;
type Kind = (typeof KINDS)[number]["value"];

/** Chooses the start of a lineage by its kind and name. */
export function Asker({ of, onAsk }: { of: string | undefined; onAsk: (of: string) => void }) {
  const split = partsOf(of);
  const [kind, setKind] = useState<Kind>(split.kind);
  const [name, setName] = useState(split.name);
  // The back button and the graph change the address, too.
  useEffect(() => {
    const now = partsOf(of);
    setKind(now.kind);
    setName(now.name);
  }, [of]);
  const like = KINDS.find((k) => k.value === kind)?.like;
  const go = (e: FormEvent) => {
    e.preventDefault();
    const text = name.trim();
    if (text) onAsk(/^[a-z_]+:/.test(text) ? text : `${kind}:${text}`);
  };
  return (
    <form onSubmit={go} className="flex min-w-0 flex-wrap items-center gap-2">
      <Select aria-label="Kind" options={KINDS} value={kind} onChange={setKind} />
      <Input
        aria-label="Name"
        mono
        placeholder={like}
        value={name}
        onChange={(e) => setName(e.target.value)}
        className="w-64! max-md:w-48!"
      />
      <Button type="submit" disabled={!name.trim()}>
        Show lineage
      </Button>
    </form>
  );
}

function partsOf(of: string | undefined): { kind: Kind; name: string } {
  const at = of?.indexOf(":") ?? -1;
  const kind = KINDS.find((k) => k.value === of?.slice(0, at))?.value;
  // For other kinds, the field has the whole id.
  return { kind: kind ?? "model", name: kind ? (of?.slice(at + 1) ?? "") : (of ?? "") };
}

const FEW = 8;

/** The page before the user chooses a start: suggestions, and commands that record the first data. */
export function Start({ team, onAsk }: { team: string | undefined; onAsk: (of: string) => void }) {
  return (
    <div className="flex max-w-250 flex-col gap-4">
      <p className="max-w-150 text-muted">
        See what produced a model: its run, the job with its cost, code, image and data. Or see
        which runs and models used a version of data.
      </p>
      <Asker of={undefined} onAsk={onAsk} />
      {team !== undefined && (
        <div className="grid items-start gap-4 md:grid-cols-2">
          <Models team={team} onAsk={onAsk} />
          <Data team={team} onAsk={onAsk} />
        </div>
      )}
    </div>
  );
}

function Models({ team, onAsk }: { team: string; onAsk: (of: string) => void }) {
  const models = useQuery(registeredModelsQuery(team));
  const rows = models.data
    // The lineage of a model that another team shares is closed.
    ?.filter((m) => !sharedBy(m.name))
    .flatMap((m) => newest(m) ?? [])
    .sort((a, b) => b.creation_timestamp - a.creation_timestamp)
    .slice(0, FEW);
  return (
    <Panel title={`Newest models of ${team}`} flush>
      <Picks
        rows={rows?.map((v) => ({
          of: `model:${v.name}@${v.version}`,
          name: `${v.name}@${v.version}`,
          at: v.creation_timestamp,
        }))}
        failed={Boolean(models.error)}
        none="No model is registered yet. A script registers one with mlflow.register_model."
        command="berth models list"
        onAsk={onAsk}
      />
    </Panel>
  );
}

function Data({ team, onAsk }: { team: string; onAsk: (of: string) => void }) {
  const data = useQuery(dataQuery(team));
  const rows = data.data && [...data.data].sort((a, b) => (a.created < b.created ? 1 : -1));
  return (
    <Panel title={`Newest data of ${team}`} flush>
      <Picks
        rows={rows?.slice(0, FEW).map((v) => ({
          of: `data:${dataName(v)}`,
          name: dataName(v),
          at: v.created,
        }))}
        failed={Boolean(data.error)}
        none="The team has no data yet. This command pushes the first version."
        command="berth data push ./corpus c4@v1"
        onAsk={onAsk}
      />
    </Panel>
  );
}

function Picks({
  rows,
  failed,
  none,
  command,
  onAsk,
}: {
  rows: { of: string; name: string; at: string | number }[] | undefined;
  failed: boolean;
  none: string;
  command: string;
  onAsk: (of: string) => void;
}) {
  if (failed) return <p className="p-3 text-muted">Berth cannot load this list.</p>;
  if (!rows)
    return (
      <div data-skeleton className="p-3">
        <Skeleton width="60%" />
      </div>
    );
  if (rows.length === 0)
    return (
      <div className="flex flex-col gap-2 p-3">
        <p className="text-muted">{none}</p>
        <div className="rounded-md border border-line">
          <CommandLine command={command} />
        </div>
      </div>
    );
  return (
    <ul className="p-1">
      {rows.map((row) => (
        <li key={row.of}>
          <button
            type="button"
            onClick={() => onAsk(row.of)}
            className="flex h-7 w-full items-center gap-2 rounded-sm px-2 text-left outline-offset-[-2px] hover:bg-surface-2 max-md:h-9"
          >
            <span className="min-w-0 flex-1">
              <Cut>{row.name}</Cut>
            </span>
            <span className="shrink-0 text-12 text-muted">
              <Time at={row.at} />
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
