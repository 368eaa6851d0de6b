import { Columns2, LineChart, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { asApiError } from "@/api/error";
import { useChange } from "@/api/queries";
import { useMayFor } from "@/api/session";
import { Button, Confirm, toast } from "@/design";
import { plural } from "@/lib/format";
import { changeRuns } from "./changes";
import type { Row } from "./model/row";
import type { RunsView } from "./search";

/** The actions on the selected runs. */
export function Bulk({
  rows,
  team,
  deleted,
  onView,
  onDone,
}: {
  rows: readonly Row[];
  team: string | undefined;
  deleted: boolean;
  onView: (view: RunsView) => void;
  onDone: () => void;
}) {
  const [asked, ask] = useState(false);
  const may = useMayFor();
  const denied = rows
    .map((row) => may("JobsControl", { team, user: row.user }))
    .find((m) => !m.ok)?.reason;
  const change = useChange(
    (kind: "delete" | "restore") =>
      changeRuns(
        rows.map((r) => r.id),
        kind,
      ),
    "runs",
  );
  const restore = async () => {
    try {
      const done = await change.mutateAsync("restore");
      toast(`Restored ${plural(done, "run")}`);
      onDone();
    } catch (e) {
      toast(`Not all restored: ${asApiError(e).message}`, { tone: "bad" });
    }
  };
  return (
    <>
      <Button icon={LineChart} onClick={() => onView("curves")}>
        Curves
      </Button>
      <Button
        icon={Columns2}
        denied={rows.length < 2 ? "Select at least two runs." : undefined}
        onClick={() => onView("compare")}
      >
        Compare
      </Button>
      {deleted ? (
        <Button
          icon={RotateCcw}
          denied={denied}
          busy={change.isPending}
          onClick={() => void restore()}
        >
          Restore
        </Button>
      ) : (
        <Button icon={Trash2} look="danger" denied={denied} onClick={() => ask(true)}>
          Delete
        </Button>
      )}
      <Confirm
        open={asked}
        onClose={() => ask(false)}
        title={`Delete ${plural(rows.length, "run")}?`}
        verb={rows.length === 1 ? "Delete the run" : "Delete the runs"}
        onConfirm={async () => {
          await change.mutateAsync("delete");
          onDone();
        }}
      >
        Lists omit deleted runs. You can restore them until the server removes them for good.
      </Confirm>
    </>
  );
}
