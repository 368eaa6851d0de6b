import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { secretsQuery, useChange } from "@/api/queries";
import { teamsQuery, useMayFor } from "@/api/session";
import type { Secret } from "@/api/types";
import {
  Button,
  type Column,
  Confirm,
  Cut,
  Dialog,
  EmptyState,
  ErrorNote,
  Field,
  Input,
  Note,
  Select,
  Table,
  Textarea,
  Time,
} from "@/design";
import { Section } from "./Layout";

/** Names of secrets. A value goes in and never comes out again but into jobs. */
export function Secrets() {
  const secrets = useQuery(secretsQuery);
  const may = useMayFor();
  const [editing, setEditing] = useState<{ team: string; name: string }>();
  const [removing, setRemoving] = useState<Secret>();
  const remove = useChange(
    ({ team, name }: Secret) =>
      data(api.DELETE("/v1/secrets/{team}/{secret}", { params: { path: { team, secret: name } } })),
    "secrets",
  );
  const columns: Column<Secret>[] = [
    {
      id: "name",
      header: "Secret",
      cell: (s) => <Cut>{s.name}</Cut>,
      value: (s) => s.name,
      width: 160,
      grow: 1,
      fixed: true,
      narrow: "title",
    },
    {
      id: "team",
      header: "Team",
      cell: (s) => <Cut>{s.team}</Cut>,
      value: (s) => s.team,
      width: 120,
      narrow: "meta",
    },
    {
      id: "by",
      header: "Set by",
      cell: (s) => <Cut>{s.by}</Cut>,
      value: (s) => s.by,
      width: 120,
      narrow: "meta",
    },
    {
      id: "created",
      header: "Updated",
      cell: (s) => <Time at={s.created} />,
      value: (s) => s.created,
      width: 100,
      align: "right",
      narrow: "hide",
    },
    {
      id: "act",
      header: "Actions",
      cell: (s) => {
        const allowed = may("SecretsManage", { team: s.team });
        return (
          <span className="inline-flex gap-1">
            <Button
              size="sm"
              denied={allowed.reason}
              onClick={() => setEditing({ team: s.team, name: s.name })}
            >
              Replace
            </Button>
            <Button
              size="sm"
              look="quiet"
              icon={Trash2}
              iconOnly
              denied={allowed.reason}
              onClick={() => setRemoving(s)}
            >
              {`Remove secret ${s.name}`}
            </Button>
          </span>
        );
      },
      width: 120,
      align: "right",
      narrow: "end",
    },
  ];
  const any = may("SecretsManage");
  return (
    <Section
      id="secrets"
      command="berth secret list"
      fill
      actions={
        <Button
          look="primary"
          icon={Plus}
          denied={any.reason}
          onClick={() => setEditing({ team: "", name: "" })}
        >
          Add secret
        </Button>
      }
    >
      <Table
        id="admin-secrets"
        label="Secrets"
        columns={columns}
        rows={secrets.data}
        rowId={(s) => `${s.team}/${s.name}`}
        error={secrets.error ?? undefined}
        onRetry={() => void secrets.refetch()}
        empty={
          <EmptyState title="There are no secrets" command="berth secret set HF_TOKEN --team nlp">
            A job names a secret, and Berth puts its value into the environment of the job.
          </EmptyState>
        }
      />
      {editing && <EditSecret secret={editing} onClose={() => setEditing(undefined)} />}
      <Confirm
        open={removing !== undefined}
        onClose={() => setRemoving(undefined)}
        title={`Remove secret ${removing?.name}?`}
        loses={[{ what: "Jobs that name it no longer start" }]}
        verb="Remove secret"
        onConfirm={() => (removing ? remove.mutateAsync(removing) : undefined)}
      >
        Berth cannot show its value first: a stored value cannot be read back.
      </Confirm>
    </Section>
  );
}

function EditSecret({
  secret,
  onClose,
}: {
  secret: { team: string; name: string };
  onClose: () => void;
}) {
  const teams = useQuery(teamsQuery);
  const may = useMayFor();
  const [team, setTeam] = useState(secret.team);
  const [name, setName] = useState(secret.name);
  const [value, setValue] = useState("");
  const known = secret.name !== "";
  const save = useChange(
    () =>
      data(
        api.PUT("/v1/secrets/{team}/{secret}", {
          params: { path: { team, secret: name } },
          body: { value },
        }),
      ),
    "secrets",
  );
  const send = () => save.mutate(undefined, { onSuccess: onClose });
  const mine = (teams.data ?? []).filter((t) => may("SecretsManage", { team: t.name }).ok);
  return (
    <Dialog
      open
      onClose={onClose}
      title={known ? `Replace ${name}` : "Add a secret"}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            busy={save.isPending}
            disabled={!team || !name || !value}
            onClick={send}
          >
            Keep secret
          </Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(e) => {
          e.preventDefault();
          send();
        }}
      >
        {!known && (
          <>
            <Field label="Team">
              {(p) => (
                <Select
                  {...p}
                  options={mine.map((t) => ({ value: t.name, label: t.name }))}
                  value={team || undefined}
                  onChange={setTeam}
                  placeholder="Choose"
                />
              )}
            </Field>
            <Field label="Name">
              {(p) => <Input {...p} mono value={name} onChange={(e) => setName(e.target.value)} />}
            </Field>
          </>
        )}
        <Field label="Value">
          {(p) => (
            <Textarea
              {...p}
              mono
              rows={3}
              value={value}
              onChange={(e) => setValue(e.target.value)}
            />
          )}
        </Field>
        <Note>Berth encrypts it and never shows it again. Jobs that start from now on get it.</Note>
        {save.error && <ErrorNote error={save.error} />}
      </form>
    </Dialog>
  );
}
