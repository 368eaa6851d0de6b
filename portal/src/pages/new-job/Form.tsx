import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { policyQuery, projectsQuery, secretsQuery, volumesQuery } from "@/api/queries";
import { teamsQuery, useMe } from "@/api/session";
import { Segmented, Switch } from "@/design";
import { useJobForm } from "./context";
import { Cell, ChoiceField, CommandField, Problems, Section, TextField } from "./fields";
import { GpuFields } from "./gpu-field";
import { CLASSES, classesFor, teamsFor } from "./model/rights";
import { MoreFields } from "./more-fields";
import { PairsField, readSecrets, writeSecrets } from "./pairs";

const KINDS = [
  { value: "job", label: "Job" },
  { value: "notebook", label: "Notebook" },
  { value: "service", label: "Service" },
] as const;

/** The file by fields. What has none keeps its place in the YAML. */
export function Form() {
  const form = useJobForm();
  const kind = form.get("kind");
  return (
    <div className="px-4">
      <Section title="What runs">
        <Cell of={1}>
          <Segmented
            label="Kind"
            options={KINDS}
            value={kind === "notebook" || kind === "service" ? kind : "job"}
            onChange={(k) => form.set("kind", k === "job" ? undefined : k)}
          />
        </Cell>
        <Cell of={2}>
          <TextField label="Name" path="name" placeholder="Named after its command" />
        </Cell>
        <Cell of={2}>
          <TextField label="Comment" path="comment" placeholder="What it is for" />
        </Cell>
        <Cell of={1}>
          <CommandField optional={kind === "notebook"} />
        </Cell>
        {kind === "service" && <Service />}
      </Section>
      <Section title="GPUs" about="per node">
        <GpuFields />
        <Nodes />
      </Section>
      <Section title="Team and cost">
        <Whose />
      </Section>
      <Section title="Limits">
        <Limits />
      </Section>
      <Section title="Environment">
        <Environment />
      </Section>
      <Section title="Checkpoint and retry">
        <Saving />
      </Section>
      <MoreFields />
    </div>
  );
}

function Service() {
  return (
    <>
      <Cell of={3}>
        <TextField label="Port" path="port" type="number" min={1} placeholder="Given as PORT" />
      </Cell>
      <Cell of={3}>
        <TextField label="Ready when" path="ready" placeholder="tcp, or /health" />
      </Cell>
    </>
  );
}

function Nodes() {
  const form = useJobForm();
  const several = Number(form.get("nodes") ?? 1) > 1;
  const launch = form.get("launch");
  return (
    <>
      <Cell of={3}>
        <TextField
          label="Nodes"
          path="nodes"
          type="number"
          min={1}
          placeholder="1"
          hint="All start together"
        />
      </Cell>
      <Cell of={3}>
        <ChoiceField
          label="Launch"
          path="launch"
          fallback="Once on each node"
          options={[
            { value: "ranks", label: "One process for each GPU" },
            { value: "torchrun", label: "torchrun" },
          ]}
        />
      </Cell>
      {launch !== undefined && (
        <Cell of={3}>
          <TextField
            label="Ranks on each node"
            path="ranks"
            type="number"
            min={1}
            placeholder="One for each GPU"
          />
        </Cell>
      )}
      {(several || form.get("place") !== undefined) && (
        <Cell of={3}>
          <ChoiceField
            label="Place"
            path="place"
            fallback="Anywhere"
            options={[
              { value: "nvlink", label: "Joined by NVLink" },
              { value: "node", label: "On one machine" },
              { value: "rack", label: "In one rack" },
              { value: "apart", label: "Each on its own machine" },
            ]}
          />
        </Cell>
      )}
    </>
  );
}

function Whose() {
  const form = useJobForm();
  const me = useMe();
  const teams = useQuery(teamsQuery).data;
  const projects = useQuery(projectsQuery).data;
  const parents = useMemo(
    () => new Map((teams ?? []).flatMap((t) => (t.parent ? [[t.name, t.parent] as const] : []))),
    [teams],
  );
  const team = form.get("team") ?? me?.default_team;
  const mine = teamsFor(me, teams ?? [], parents);
  return (
    <>
      <Cell of={3}>
        <ChoiceField
          label="Team"
          path="team"
          fallback={me?.default_team ? `${me.default_team} (your default)` : "Choose a team"}
          options={mine
            .filter((t) => t !== me?.default_team || form.get("team") === t)
            .map((t) => ({ value: t, label: t }))}
        />
      </Cell>
      <Cell of={3}>
        <ChoiceField
          label="Project"
          path="project"
          fallback={`${me?.default_project ?? "default"} (your default)`}
          options={(projects ?? [])
            .filter((p) => p.team === team)
            .map((p) => ({ value: p.name, label: p.name }))}
        />
      </Cell>
      <Cell of={3}>
        <TextField label="Experiment" path="experiment" placeholder="None" />
      </Cell>
    </>
  );
}

function Limits() {
  const form = useJobForm();
  const me = useMe();
  const longest = useQuery(policyQuery).data?.knobs.default_time_limit;
  const allowed = classesFor(me);
  return (
    <>
      <Cell of={3}>
        <TextField
          label="Time limit"
          path="time"
          placeholder={longest ? `${longest}, the cluster's` : "The cluster's"}
          hint="90m, 12h, 3d"
        />
      </Cell>
      <Cell of={3}>
        <ChoiceField
          label="Priority"
          path="priority"
          fallback="normal (default)"
          hint="Higher goes first in its team"
          options={CLASSES.filter((c) => allowed.includes(c.name) && c.name !== "normal").map(
            (c) => ({
              value: c.name,
              label: "across" in c ? `${c.name}: stops jobs of other teams` : c.name,
            }),
          )}
        />
      </Cell>
      <Cell of={3}>
        <TextField
          label="Budget"
          path="budget"
          placeholder="None"
          hint="Paused with its checkpoint there"
        />
      </Cell>
      <Cell of={1}>
        <Switch
          label="May be stopped for others and run on later"
          checked={form.get("preemptible") !== "false"}
          disabled={form.locked}
          onChange={(on) => form.set("preemptible", on ? undefined : "false")}
        />
        <Problems of="preemptible" />
      </Cell>
    </>
  );
}

function Environment() {
  const form = useJobForm();
  const me = useMe();
  const team = form.get("team") ?? me?.default_team;
  const secrets = useQuery({ ...secretsQuery, retry: false }).data;
  const volumes = useQuery({ ...volumesQuery, retry: false }).data;
  const ofTeam = <T extends { team: string; name: string }>(all: readonly T[] | undefined) =>
    (all ?? []).filter((x) => x.team === team).map((x) => x.name);
  return (
    <>
      <Cell of={1}>
        <PairsField label="Variables" path="env" one="variable" names="EPOCHS" values="3" />
      </Cell>
      <Cell of={1}>
        <PairsField
          label="Secrets"
          path="secrets"
          one="secret"
          names="HF_TOKEN"
          values="The team's secret, such as hf-token"
          options={ofTeam(secrets)}
          read={readSecrets}
          write={writeSecrets}
          hint="Only names: values are never shown, here or in logs."
        />
      </Cell>
      <Cell of={1}>
        <PairsField
          label="Volumes"
          path="volumes"
          one="volume"
          names="/data"
          values="A volume's name, or a folder"
          options={ofTeam(volumes)}
        />
      </Cell>
    </>
  );
}

function Saving() {
  return (
    <>
      <Cell of={3}>
        <TextField
          label="Checkpoint folder"
          path="checkpoint.path"
          placeholder="None"
          hint="BERTH_CHECKPOINT_DIR"
        />
      </Cell>
      <Cell of={3}>
        <TextField label="Saves every" path="checkpoint.every" placeholder="30m" />
      </Cell>
      <Cell of={3}>
        <TextField
          label="Time to save when stopped"
          path="checkpoint.grace"
          placeholder="The cluster's"
        />
      </Cell>
      <Cell of={3}>
        <TextField label="Retries of its own failure" path="retry.error" placeholder="0" />
      </Cell>
      <Cell of={3}>
        <TextField label="Retries out of memory" path="retry.oom" placeholder="0" />
      </Cell>
      <Cell of={3}>
        <TextField label="Retries of machine trouble" path="retry.infra" placeholder="forever" />
      </Cell>
    </>
  );
}
