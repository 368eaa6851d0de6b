import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { useChange, usersQuery } from "@/api/queries";
import { ROLE_WORDS } from "@/api/rights";
import { useMayFor, useMe } from "@/api/session";
import type { Role, User } from "@/api/types";
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
  None,
  Select,
  Table,
  Time,
} from "@/design";
import { Section } from "./Layout";

const CLUSTER_ROLES: { value: Role; label: string }[] = [
  { value: "viewer", label: "viewer of everything" },
  { value: "operator", label: "operator" },
  { value: "admin", label: "admin" },
];

/** Everybody who may sign in. */
export function People() {
  const users = useQuery(usersQuery);
  const me = useMe();
  const manage = useMayFor()("UsersManage");
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<string>();
  const remove = useChange(
    (user: string) => data(api.DELETE("/v1/users/{user}", { params: { path: { user } } })),
    "users",
    "teams",
  );
  const columns: Column<User>[] = [
    {
      id: "name",
      header: "Person",
      cell: (u) => <Cut>{u.name}</Cut>,
      value: (u) => u.name,
      width: 140,
      grow: 1,
      fixed: true,
      narrow: "title",
    },
    {
      id: "cluster",
      header: "Cluster role",
      cell: (u) => (u.cluster_role ? ROLE_WORDS[u.cluster_role] : <None />),
      value: (u) => u.cluster_role,
      width: 120,
      narrow: "end",
    },
    {
      id: "teams",
      header: "Teams",
      cell: (u) =>
        u.teams.length === 0 ? (
          <None />
        ) : (
          <Cut>{u.teams.map((m) => `${m.team} (${ROLE_WORDS[m.role]})`).join(", ")}</Cut>
        ),
      value: (u) => u.teams.map((m) => `${m.team}:${m.role}`).join(" "),
      width: 200,
      grow: 2,
      narrow: "meta",
    },
    {
      id: "created",
      header: "Added",
      cell: (u) => <Time at={u.created} />,
      value: (u) => u.created,
      width: 110,
      align: "right",
      narrow: "hide",
    },
    {
      id: "remove",
      header: "Remove",
      cell: (u) => (
        <Button
          size="sm"
          look="quiet"
          icon={Trash2}
          iconOnly
          denied={manage.reason ?? (u.name === me?.user ? "This is you." : undefined)}
          onClick={() => setRemoving(u.name)}
        >
          {`Remove ${u.name}`}
        </Button>
      ),
      width: 72,
      align: "right",
      narrow: "end",
    },
  ];
  return (
    <Section
      id="people"
      command="berth user list"
      fill
      actions={
        manage.ok && (
          <Button look="primary" icon={Plus} onClick={() => setAdding(true)}>
            Add person
          </Button>
        )
      }
    >
      <Table
        id="admin-people"
        label="People"
        columns={columns}
        rows={users.data}
        rowId={(u) => u.name}
        error={users.error ?? undefined}
        onRetry={() => void users.refetch()}
        csv="people"
        empty={<EmptyState title="No people yet" command="berth user add kim" />}
      />
      <AddPerson open={adding} onClose={() => setAdding(false)} />
      <Confirm
        open={removing !== undefined}
        onClose={() => setRemoving(undefined)}
        title={`Remove ${removing}?`}
        loses={[
          { what: "All tokens and sessions, at once" },
          { what: "Open terminals and logs end" },
          { what: "Schedules are paused" },
        ]}
        verb="Remove person"
        onConfirm={() => remove.mutateAsync(removing ?? "")}
      >
        Running jobs go on. What was spent stays in the books.
      </Confirm>
    </Section>
  );
}

function AddPerson({ open, onClose }: { open: boolean; onClose: () => void }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role | "">("");
  const add = useChange(
    (user: { name: string; cluster_role?: Role }) => data(api.POST("/v1/users", { body: user })),
    "users",
  );
  const close = () => {
    add.reset();
    setName("");
    setRole("");
    onClose();
  };
  const save = () =>
    add.mutate({ name, ...(role && { cluster_role: role }) }, { onSuccess: close });
  return (
    <Dialog
      open={open}
      onClose={close}
      title="Add a person"
      description="Give roles in teams under Teams, and make a first token under Tokens, unless people sign in by your provider."
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look="primary" busy={add.isPending} disabled={!name} onClick={save}>
            Add person
          </Button>
        </>
      }
    >
      <form
        className="flex flex-col gap-3"
        onSubmit={(e) => {
          e.preventDefault();
          save();
        }}
      >
        <Field label="Name">
          {(p) => <Input {...p} value={name} onChange={(e) => setName(e.target.value)} />}
        </Field>
        <Field label="Role in the cluster" optional>
          {(p) => (
            <Select
              {...p}
              options={CLUSTER_ROLES}
              value={role || undefined}
              onChange={setRole}
              placeholder="None"
            />
          )}
        </Field>
        {add.error && <ErrorNote error={add.error} />}
      </form>
    </Dialog>
  );
}
