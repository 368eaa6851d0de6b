import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import type { ModelVersion, RegisteredModel } from "@/api/tracking";
import {
  Button,
  Checkbox,
  Confirm,
  Dialog,
  ErrorNote,
  Field,
  Input,
  Note,
  Select,
  Textarea,
  toast,
} from "@/design";
import { plural } from "@/lib/format";
import { changeModel, type ModelChange, useModelChange } from "./calls";

/** The open dialog. The page holds it, so that only one is open. */
export type Asked =
  | { kind: "describe"; version?: ModelVersion }
  | { kind: "tag"; version?: ModelVersion; key?: string; value?: string }
  | { kind: "untag"; version?: ModelVersion; key: string }
  | { kind: "alias"; version?: ModelVersion }
  | { kind: "unalias"; alias: string; names: string }
  | { kind: "stage"; version: ModelVersion }
  | { kind: "delete"; version?: ModelVersion };

export function ModelDialogs({
  team,
  model,
  versions,
  asked,
  onClose,
  onDeleted,
}: {
  team: string;
  model: RegisteredModel;
  versions: readonly ModelVersion[];
  asked: Asked | undefined;
  onClose: () => void;
  onDeleted: (version: ModelVersion | undefined) => void;
}) {
  const client = useQueryClient();
  const change = useModelChange(team, model.name);
  const send = async (what: ModelChange, done: string) => {
    await change.mutateAsync(what);
    toast(done);
    onClose();
  };
  if (!asked) return null;
  const of = { model, versions, send, onClose };
  switch (asked.kind) {
    case "describe":
      return <Describe {...of} version={asked.version} />;
    case "tag":
      return <Tag {...of} asked={asked} />;
    case "alias":
      return <Alias {...of} version={asked.version} />;
    case "stage":
      return <Stage {...of} version={asked.version} />;
    case "untag":
      return (
        <Confirm
          open
          onClose={onClose}
          title={`Remove the tag ${asked.key}${ofVersion(asked.version)}?`}
          verb="Remove tag"
          onConfirm={() =>
            send(
              {
                kind: "untag",
                key: asked.key,
                ...(asked.version && { version: asked.version.version }),
              },
              `Removed the tag ${asked.key}`,
            )
          }
        >
          Searches for the tag no longer find {asked.version ? "this version" : "this model"}.
        </Confirm>
      );
    case "unalias":
      return (
        <Confirm
          open
          onClose={onClose}
          title={`Remove the alias ${asked.alias}?`}
          loses={[{ what: `Code that loads models:/${model.name}@${asked.alias} fails` }]}
          verb="Remove alias"
          onConfirm={() =>
            send({ kind: "unalias", alias: asked.alias }, `Removed the alias ${asked.alias}`)
          }
        >
          The alias names version {asked.names} now. The version stays.
        </Confirm>
      );
    case "delete":
      return (
        <Delete
          {...of}
          version={asked.version}
          onDelete={async () => {
            const { version } = asked;
            if (version) {
              await send(
                { kind: "delete", version: version.version },
                `Deleted version ${version.version}`,
              );
              onDeleted(version);
              return;
            }
            // Leave the page first, because it cannot load the deleted model again.
            await changeModel(team, model.name, { kind: "delete" });
            onDeleted(undefined);
            client.removeQueries({ queryKey: ["models", "one", model.name] });
            void client.invalidateQueries({ queryKey: ["models", "of-team"] });
            toast(`Deleted ${model.name}`);
          }}
        />
      );
  }
}

const ofVersion = (version: ModelVersion | undefined) =>
  version ? ` of version ${version.version}` : "";

interface Of {
  model: RegisteredModel;
  versions: readonly ModelVersion[];
  send: (what: ModelChange, done: string) => Promise<void>;
  onClose: () => void;
}

/** A form. If the server refuses, it stays open and shows the error. */
export function FormDialog({
  title,
  verb,
  ready,
  onClose,
  onSend,
  children,
}: {
  title: string;
  verb: string;
  ready: boolean;
  onClose: () => void;
  onSend: () => Promise<void>;
  children: ReactNode;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const go = async () => {
    if (!ready || busy) return;
    setBusy(true);
    setError(undefined);
    try {
      await onSend();
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      title={title}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" busy={busy} disabled={!ready} onClick={() => void go()}>
            {verb}
          </Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(e: FormEvent) => {
          e.preventDefault();
          void go();
        }}
      >
        {children}
        {error !== undefined && <ErrorNote error={error} />}
      </form>
    </Dialog>
  );
}

const MOST_DESCRIPTION = 5000;

function Describe({ model, send, onClose, version }: Of & { version: ModelVersion | undefined }) {
  const [text, setText] = useState((version ?? model).description ?? "");
  const left = MOST_DESCRIPTION - [...text].length;
  return (
    <FormDialog
      title={`Describe ${version ? `version ${version.version}` : model.name}`}
      verb="Save description"
      ready={left >= 0}
      onClose={onClose}
      onSend={() =>
        send(
          {
            kind: "describe",
            description: text,
            ...(version && { version: version.version }),
          },
          "Saved the description",
        )
      }
    >
      <Field
        label="Description"
        hint="Berth shows it as plain text, with its line breaks."
        error={left < 0 ? `${plural(-left, "character")} too many` : undefined}
      >
        {(p) => <Textarea {...p} rows={8} value={text} onChange={(e) => setText(e.target.value)} />}
      </Field>
    </FormDialog>
  );
}

function Tag({ model, send, onClose, asked }: Of & { asked: Extract<Asked, { kind: "tag" }> }) {
  const [key, setKey] = useState(asked.key ?? "");
  const [value, setValue] = useState(asked.value ?? "");
  const tags = (asked.version ?? model).tags;
  const there = asked.key === undefined && tags.find((t) => t.key === key.trim());
  return (
    <FormDialog
      title={`${asked.key === undefined ? "Set a tag" : `Change the tag ${asked.key}`}${ofVersion(asked.version)}`}
      verb="Set tag"
      ready={key.trim() !== ""}
      onClose={onClose}
      onSend={() =>
        send(
          {
            kind: "tag",
            key: key.trim(),
            value,
            ...(asked.version && { version: asked.version.version }),
          },
          `Set the tag ${key.trim()}`,
        )
      }
    >
      {asked.key === undefined && (
        <Field label="Key" hint={there ? `The value is ${there.value || "empty"} now.` : undefined}>
          {(p) => <Input {...p} mono value={key} onChange={(e) => setKey(e.target.value)} />}
        </Field>
      )}
      <Field label="Value" optional>
        {(p) => <Input {...p} value={value} onChange={(e) => setValue(e.target.value)} />}
      </Field>
    </FormDialog>
  );
}

function Alias({
  model,
  versions,
  send,
  onClose,
  version,
}: Of & { version: ModelVersion | undefined }) {
  const [alias, setAlias] = useState("");
  const [number, setNumber] = useState(version?.version ?? versions[0]?.version ?? "");
  const name = alias.trim();
  const now = model.aliases.find((a) => a.alias === name);
  return (
    <FormDialog
      title={`Set an alias of ${model.name}`}
      verb={now ? "Move alias" : "Set alias"}
      ready={name !== "" && number !== "" && now?.version !== number}
      onClose={onClose}
      onSend={() =>
        send({ kind: "alias", alias: name, version: number }, `${name} names version ${number}`)
      }
    >
      <Field label="Alias" hint="Such as champion. Code then loads models:/NAME@ALIAS.">
        {(p) => (
          <Input
            {...p}
            mono
            list="model-aliases"
            value={alias}
            onChange={(e) => setAlias(e.target.value)}
          />
        )}
      </Field>
      <datalist id="model-aliases">
        {model.aliases.map((a) => (
          <option key={a.alias} value={a.alias} />
        ))}
      </datalist>
      <Field label="Version">
        {(p) => (
          <Select
            {...p}
            options={versions.map((v) => ({ value: v.version, label: v.version }))}
            value={number}
            onChange={setNumber}
          />
        )}
      </Field>
      {now && (
        <Note tone={now.version === number ? "info" : "warn"}>
          {now.version === number
            ? `The alias names version ${number} already.`
            : `The alias names version ${now.version} now. Code that loads ${name} then gets version ${number}.`}
        </Note>
      )}
    </FormDialog>
  );
}

const STAGES = ["None", "Staging", "Production", "Archived"] as const;

function Stage({ versions, send, onClose, version }: Of & { version: ModelVersion }) {
  const [stage, setStage] = useState(version.current_stage);
  const [archive, setArchive] = useState(true);
  const live = stage === "Staging" || stage === "Production";
  const others = versions.filter((v) => v.version !== version.version && v.current_stage === stage);
  return (
    <FormDialog
      title={`Change the stage of version ${version.version}`}
      verb="Change stage"
      ready={stage !== version.current_stage}
      onClose={onClose}
      onSend={() =>
        send(
          {
            kind: "stage",
            version: version.version,
            stage,
            archive: live && archive && others.length > 0,
          },
          `Version ${version.version} is in ${stage}`,
        )
      }
    >
      <Field label="Stage" hint={`The stage is ${version.current_stage} now.`}>
        {(p) => (
          <Select
            {...p}
            options={STAGES.map((value) => ({ value, label: value }))}
            value={stage}
            onChange={setStage}
          />
        )}
      </Field>
      {live && others.length > 0 && (
        <Checkbox
          label={`Archive ${others.map((v) => `version ${v.version}`).join(", ")}, now in ${stage}`}
          checked={archive}
          onChange={(e) => setArchive(e.target.checked)}
        />
      )}
      <Note>MLflow recommends aliases instead of stages. Berth supports both.</Note>
    </FormDialog>
  );
}

function Delete({
  model,
  versions,
  onClose,
  version,
  onDelete,
}: Pick<Of, "model" | "versions" | "onClose"> & {
  version: ModelVersion | undefined;
  onDelete: () => Promise<void>;
}) {
  const aliases = version ? version.aliases : model.aliases.map((a) => a.alias);
  const title = version
    ? `Delete version ${version.version} of ${model.name}?`
    : `Delete ${model.name}?`;
  const loses = [
    { what: version ? "The entry of this version" : plural(versions.length, "version") },
    ...aliases.map((alias) => ({ what: `The alias ${alias}; code that loads it fails` })),
  ];
  return (
    <Confirm
      open
      onClose={onClose}
      title={title}
      loses={loses}
      verb={version ? "Delete version" : "Delete model"}
      onConfirm={onDelete}
    >
      You cannot undo this. Berth keeps the run and its files.
    </Confirm>
  );
}
