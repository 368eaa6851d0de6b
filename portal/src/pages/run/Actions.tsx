import { Ellipsis, Pencil, Repeat2, RotateCcw, Tag, Trash2, Waypoints } from "lucide-react";
import { useState } from "react";
import { asApiError } from "@/api/error";
import { useChange } from "@/api/queries";
import { useMay } from "@/api/session";
import { Button, Confirm, LinkButton, Menu, toast } from "@/design";
import { changeRun, type RunChange } from "../experiments/changes";
import { NameDialog } from "../experiments/NameDialog";
import type { RunParts } from "./model";

export function useRunChange() {
  return useChange((change: RunChange) => changeRun(change), "runs");
}

/** The actions on a run. */
export function RunActions({
  parts: { row, team },
  onReproduce,
}: {
  parts: RunParts;
  onReproduce: () => void;
}) {
  const [asked, ask] = useState<"rename" | "tag" | "delete">();
  const whose = { team, user: row.user };
  const write = useMay("JobsSubmit", whose);
  const manage = useMay("JobsControl", whose);
  const change = useRunChange();
  const run = row.id;
  const restore = async () => {
    try {
      await change.mutateAsync({ do: "restore", run });
      toast("Restored the run");
    } catch (e) {
      toast(`Not restored: ${asApiError(e).message}`, { tone: "bad" });
    }
  };
  return (
    <>
      <Button icon={Repeat2} onClick={onReproduce}>
        Reproduce
      </Button>
      <LinkButton to="/lineage" search={{ of: `run:${run}` }} icon={Waypoints}>
        Lineage
      </LinkButton>
      <Menu
        trigger={
          <Button icon={Ellipsis} iconOnly>
            Actions
          </Button>
        }
        items={[
          {
            label: "Rename",
            icon: Pencil,
            denied: write.reason,
            onSelect: () => ask("rename"),
          },
          { label: "Set a tag", icon: Tag, denied: write.reason, onSelect: () => ask("tag") },
          row.deleted
            ? {
                label: "Restore",
                icon: RotateCcw,
                denied: manage.reason,
                onSelect: () => void restore(),
              }
            : {
                label: "Delete",
                icon: Trash2,
                danger: true,
                denied: manage.reason,
                onSelect: () => ask("delete"),
              },
        ]}
      />
      {asked === "rename" && (
        <NameDialog
          title="Rename the run"
          fields={[{ label: "Name", value: row.name }]}
          verb="Rename"
          onClose={() => ask(undefined)}
          onSave={([name]) => change.mutateAsync({ do: "rename", run, name: name ?? "" })}
        />
      )}
      {asked === "tag" && <TagDialog run={run} onClose={() => ask(undefined)} />}
      <Confirm
        open={asked === "delete"}
        onClose={() => ask(undefined)}
        title={`Delete the run ${row.name}?`}
        verb="Delete the run"
        onConfirm={() => change.mutateAsync({ do: "delete", run })}
      >
        Lists omit deleted runs. You can restore it until the server removes it for good.
      </Confirm>
    </>
  );
}

/** Adds a tag, or changes its value. */
export function TagDialog({
  run,
  name = "",
  value = "",
  onClose,
}: {
  run: string;
  name?: string;
  value?: string;
  onClose: () => void;
}) {
  const change = useRunChange();
  return (
    <NameDialog
      title="Set a tag"
      fields={[
        { label: "Key", value: name, hint: "If the run has this key, the value changes." },
        { label: "Value", value, optional: true },
      ]}
      verb="Set the tag"
      onClose={onClose}
      onSave={([key, text]) =>
        change.mutateAsync({ do: "tag", run, key: key ?? "", value: text ?? "" })
      }
    />
  );
}
