import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { Switch } from "@/design";
import { useJobForm } from "./context";
import { Cell, ChoiceField, Section, TextField, WordsField } from "./fields";
import { keysOf } from "./model/doc";
import { PairsField, readSweep, writeSweep } from "./pairs";

const HERE =
  "array sweep after singleton begin deadline schedule workdir cpu memory spot image tags labels ports network".split(
    " ",
  );

/** What most jobs do without. It stands open where the file has some of it. */
export function MoreFields() {
  const form = useJobForm();
  const used = keysOf(form.job).filter((k) => HERE.includes(k));
  const [open, setOpen] = useState(used.length > 0);
  return (
    <details
      open={open || used.some((k) => form.problem(k))}
      onToggle={(e) => setOpen(e.currentTarget.open)}
      className="group py-2"
    >
      <summary className="flex h-9 cursor-pointer list-none items-center gap-2 rounded-md font-semibold text-13">
        <ChevronRight
          size={14}
          aria-hidden
          className="text-muted transition-transform duration-(--motion) group-open:rotate-90"
        />
        More
        <span className="truncate font-normal text-12 text-muted">
          {used.length > 0 ? used.join(", ") : "arrays, sweeps, order, schedules, machines"}
        </span>
      </summary>
      <Section title="Many at once">
        <Cell of={2}>
          <TextField
            label="Array"
            path="array"
            placeholder="0-99%8"
            hint="Once for each number, 8 at a time"
          />
        </Cell>
        <Cell of={1}>
          <Sweep />
        </Cell>
      </Section>
      <Section title="Order and time" about="Times are moments in UTC, or from now: 6h.">
        <Cell of={3}>
          <WordsField
            label="After"
            path="after"
            placeholder="Jobs, by name or number"
            hint="Once they have ended well"
          />
        </Cell>
        <Cell of={3}>
          <TextField label="Not before" path="begin" placeholder="6h" />
        </Cell>
        <Cell of={3}>
          <TextField label="Deadline" path="deadline" placeholder="2d" />
        </Cell>
        <Cell of={2}>
          <Schedule />
        </Cell>
        <Cell of={1}>
          <Switch
            label="Only one job of its name and user at a time"
            checked={form.get("singleton") === "true"}
            disabled={form.locked}
            onChange={(on) => form.set("singleton", on ? "true" : undefined)}
          />
        </Cell>
      </Section>
      <Section title="Machine">
        <Cell of={3}>
          <TextField label="CPU cores" path="cpu" type="number" min={0} placeholder="No claim" />
        </Cell>
        <Cell of={3}>
          <TextField label="Memory" path="memory" placeholder="No claim" hint="128GB" />
        </Cell>
        <Cell of={3}>
          <ChoiceField
            label="Spot machines"
            path="spot"
            fallback="auto (default)"
            options={[
              { value: "never", label: "never" },
              { value: "only", label: "only" },
            ]}
          />
        </Cell>
        <Cell of={2}>
          <TextField label="Folder it starts in" path="workdir" placeholder="Its own" mono />
        </Cell>
        <Cell of={2}>
          <TextField
            label="Container image"
            path="image"
            placeholder="Only where there are containers"
            mono
          />
        </Cell>
        <Cell of={3}>
          <ChoiceField
            label="Network"
            path="network"
            fallback="the machine's (default)"
            options={[{ value: "none", label: "none: it reaches only itself" }]}
          />
        </Cell>
        <Cell of={3}>
          <WordsField label="Further ports" path="ports" placeholder="6006" />
        </Cell>
        <Cell of={3}>
          <WordsField label="Tags" path="tags" placeholder="baseline" />
        </Cell>
        <Cell of={1}>
          <PairsField label="Labels" path="labels" one="label" names="owner" values="kim" />
        </Cell>
      </Section>
    </details>
  );
}

function Sweep() {
  const form = useJobForm();
  const now = form.get("sweep");
  const at_most = now && typeof now === "object" && !Array.isArray(now) ? now.at_most : undefined;
  const used = form.get("sweep") !== undefined;
  return (
    <div className="flex flex-col gap-3">
      <PairsField
        label="Sweep"
        path="sweep"
        one="parameter"
        names="lr"
        values="1e-4, 3e-4"
        hint="Once for each combination. The command has each value as $lr."
        read={readSweep}
        write={(pairs) => {
          const made = writeSweep(pairs);
          return made && at_most !== undefined ? { ...made, at_most } : made;
        }}
      />
      {used && (
        <div className="w-40">
          <TextField
            label="At a time"
            path="sweep.at_most"
            type="number"
            min={1}
            placeholder="All"
          />
        </div>
      )}
    </div>
  );
}

function Schedule() {
  const form = useJobForm();
  const value = form.get("schedule");
  const map = value !== undefined && typeof value !== "string";
  return map ? (
    <div className="grid grid-cols-2 gap-4">
      <TextField label="Schedule" path="schedule.cron" />
      <TextField label="Offset from UTC" path="schedule.timezone" placeholder="+01:00" />
    </div>
  ) : (
    <TextField
      label="Schedule"
      path="schedule"
      placeholder="0 3 * * *, or @daily"
      hint="Runs again and again, in UTC"
      options={["@hourly", "@daily", "@weekly", "0 3 * * *"]}
    />
  );
}
