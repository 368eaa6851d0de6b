import { Ellipsis, Pencil, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { asApiError } from "@/api/error";
import { useChange } from "@/api/queries";
import { useMay } from "@/api/session";
import { type Experiment, record } from "@/api/tracking";
import { Button, Confirm, Cut, Menu, Note, toast } from "@/design";
import { changeExperiment, type ExperimentChange } from "./changes";
import { NameDialog } from "./NameDialog";

/** The team and the note of the experiment, beside its name. */
export function About({ experiment, team }: { experiment: Experiment; team: string | undefined }) {
  const note = record(experiment.tags)["mlflow.note.content"];
  return (
    <span className="flex min-w-0 items-center gap-1.5 text-muted">
      <bdi className="max-w-40 truncate">{team}</bdi>
      {experiment.lifecycle_stage === "deleted" && <Note tone="warn">Deleted</Note>}
      {note && <Cut className="max-w-100 max-md:hidden">{note}</Cut>}
    </span>
  );
}

/** The actions on an experiment. */
export function Actions({
  experiment,
  name,
  team,
}: {
  experiment: Experiment;
  name: string;
  team: string | undefined;
}) {
  const [asked, ask] = useState<"rename" | "delete">();
  const id = experiment.experiment_id;
  const write = useMay("JobsSubmit", { team });
  const manage = useMay("JobsControl", { team });
  const change = useChange(
    (what: ExperimentChange) => changeExperiment(what, team),
    "experiments",
    "runs",
  );
  const isDefault = name === "Default";
  const fixed = isDefault ? "A team cannot rename or delete its default experiment." : undefined;
  const restore = async () => {
    try {
      await change.mutateAsync({ do: "restore", id });
      toast("Restored the experiment and its runs");
    } catch (e) {
      toast(`Not restored: ${asApiError(e).message}`, { tone: "bad" });
    }
  };
  return (
    <>
      <Menu
        trigger={
          <Button look="secondary" icon={Ellipsis} iconOnly>
            Actions
          </Button>
        }
        items={[
          {
            label: "Rename",
            icon: Pencil,
            denied: fixed ?? write.reason,
            onSelect: () => ask("rename"),
          },
          experiment.lifecycle_stage === "deleted"
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
                denied: fixed ?? manage.reason,
                onSelect: () => ask("delete"),
              },
        ]}
      />
      {asked === "rename" && (
        <NameDialog
          title="Rename the experiment"
          fields={[
            {
              label: "Name",
              value: name,
              hint: "A script that calls set_experiment with the old name creates a new experiment.",
            },
          ]}
          verb="Rename"
          onClose={() => ask(undefined)}
          onSave={([to]) => change.mutateAsync({ do: "rename", id, name: to ?? "" })}
        />
      )}
      <Confirm
        open={asked === "delete"}
        onClose={() => ask(undefined)}
        title={`Delete ${name} with its runs?`}
        verb="Delete the experiment"
        onConfirm={() => change.mutateAsync({ do: "delete", id })}
      >
        You can restore it until the server removes it for good. Until then, no other experiment can
        have its name.
      </Confirm>
    </>
  );
}
