import { Bookmark, Trash2 } from "lucide-react";
import { useState } from "react";
import { Button, Dialog, Field, Input, Menu } from "@/design";
import { useStored } from "@/lib/stored";
import type { Filtered } from "./filters";
import { builtIn, current, saved, type View, without } from "./views";

const NONE: View[] = [];

/** Filters with a name: those that everybody has, and one's own. */
export function Views({
  search,
  me,
  onPick,
}: {
  search: Filtered;
  me: string | undefined;
  onPick: (search: Filtered) => void;
}) {
  const [mine, setMine] = useStored<View[]>("views:jobs", NONE);
  const [naming, setNaming] = useState(false);
  const [removing, setRemoving] = useState(false);
  const all = [...builtIn(me), ...mine];
  const now = current(all, search);
  return (
    <>
      <Menu
        align="start"
        trigger={
          <Button icon={Bookmark} aria-label={`View: ${now?.name ?? "not saved"}`}>
            <span className="max-w-40 truncate">{now?.name ?? "Views"}</span>
          </Button>
        }
        items={[
          ...builtIn(me).map((v) => ({
            label: v.name,
            checked: v === now || v.name === now?.name,
            onSelect: () => onPick(v.search),
          })),
          ...(mine.length > 0 ? (["-", "Yours"] as const) : []),
          ...mine.map((v) => ({
            label: <bdi>{v.name}</bdi>,
            checked: v.name === now?.name,
            onSelect: () => onPick(v.search),
          })),
          "-",
          { label: "Save this view…", onSelect: () => setNaming(true) },
          mine.length > 0 && { label: "Remove a view…", onSelect: () => setRemoving(true) },
        ]}
      />
      {naming && (
        <Naming
          onClose={() => setNaming(false)}
          onSave={(name) => setMine(saved(mine, name, search))}
          taken={mine.map((v) => v.name)}
        />
      )}
      <Dialog open={removing} onClose={() => setRemoving(false)} title="Your views" width={360}>
        <ul className="flex flex-col divide-y divide-line">
          {mine.map((v) => (
            <li key={v.name} className="flex items-center gap-2 py-1">
              <bdi className="min-w-0 flex-1 truncate">{v.name}</bdi>
              <Button
                look="quiet"
                size="sm"
                icon={Trash2}
                iconOnly
                onClick={() => setMine(without(mine, v.name))}
              >
                {`Remove ${v.name}`}
              </Button>
            </li>
          ))}
          {mine.length === 0 && <li className="py-2 text-muted">None is left.</li>}
        </ul>
      </Dialog>
    </>
  );
}

function Naming({
  onClose,
  onSave,
  taken,
}: {
  onClose: () => void;
  onSave: (name: string) => void;
  taken: readonly string[];
}) {
  const [name, setName] = useState("");
  const trimmed = name.trim();
  return (
    <Dialog
      open
      onClose={onClose}
      title="Save this view"
      description="Filters and order under a name, for you in this browser."
      width={400}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            disabled={trimmed === ""}
            onClick={() => {
              onSave(trimmed);
              onClose();
            }}
          >
            Save view
          </Button>
        </>
      }
    >
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (trimmed === "") return;
          onSave(trimmed);
          onClose();
        }}
      >
        <Field
          label="Name"
          hint={taken.includes(trimmed) ? "It replaces your view of that name." : undefined}
        >
          {(p) => (
            <Input
              {...p}
              autoFocus
              maxLength={60}
              value={name}
              onChange={(e) => setName(e.target.value)}
            />
          )}
        </Field>
      </form>
    </Dialog>
  );
}
