import { useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { membersQuery, projectsQuery, useChange, usersQuery } from "@/api/queries";
import { ROLE_WORDS } from "@/api/rights";
import { teamsQuery, useMayFor } from "@/api/session";
import type { Member, Role, Team } from "@/api/types";
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
  Panel,
  Select,
  Table,
} from "@/design";
import { Section } from "./Layout";

const ROLES = (["viewer", "researcher", "team_lead"] as const).map((value) => ({
  value: value as Role,
  label: ROLE_WORDS[value],
}));

/** Teams with who is in them, and their projects. */
export function Teams() {
  const [team, setTeam] = useState<string>();
  const teams = useQuery(teamsQuery);
  const may = useMayFor();
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<string>();
  const remove = useChange(
    (name: string) => data(api.DELETE("/v1/teams/{team}", { params: { path: { team: name } } })),
    "teams",
    "queues",
  );
  const manage = may("TeamsManage");
  const columns: Column<Team>[] = [
    {
      id: "name",
      header: "Team",
      cell: (t) => <Cut>{t.name}</Cut>,
      value: (t) => t.name,
      width: 160,
      grow: 1,
      fixed: true,
      narrow: "title",
    },
    {
      id: "parent",
      header: "Below",
      cell: (t) => (t.parent ? <Cut>{t.parent}</Cut> : <None />),
      value: (t) => t.parent,
      width: 140,
      grow: 1,
      narrow: "meta",
    },
    {
      id: "remove",
      header: "Remove",
      cell: (t) => (
        <Button
          size="sm"
          look="quiet"
          icon={Trash2}
          iconOnly
          denied={manage.reason}
          onClick={(e) => {
            e.stopPropagation();
            setRemoving(t.name);
          }}
        >
          {`Remove ${t.name}`}
        </Button>
      ),
      width: 72,
      align: "right",
      narrow: "end",
    },
  ];
  const chosen = teams.data?.find((t) => t.name === team)?.name ?? teams.data?.[0]?.name;
  return (
    <Section
      id="teams"
      command={chosen ? `berth member list ${chosen}` : "berth team list"}
      actions={
        manage.ok && (
          <Button look="primary" icon={Plus} onClick={() => setAdding(true)}>
            Add team
          </Button>
        )
      }
    >
      <div className="grid items-start gap-4 lg:grid-cols-2">
        <Panel title="Teams" flush>
          <Table
            id="admin-teams"
            label="Teams"
            columns={columns}
            rows={teams.data}
            rowId={(t) => t.name}
            error={teams.error ?? undefined}
            onRetry={() => void teams.refetch()}
            open={chosen}
            onOpen={(t) => setTeam(t.name)}
            fit
            empty={
              <EmptyState title="There are no teams yet" command="berth team add nlp">
                A team has a queue, a quota and a budget of its own.
              </EmptyState>
            }
          />
        </Panel>
        {chosen && (
          <div className="flex min-w-0 flex-col gap-4">
            <Members team={chosen} />
            <Projects team={chosen} />
          </div>
        )}
      </div>
      <AddTeam open={adding} onClose={() => setAdding(false)} teams={teams.data ?? []} />
      <Confirm
        open={removing !== undefined}
        onClose={() => setRemoving(undefined)}
        title={`Remove team ${removing}?`}
        loses={[
          { what: "Its members lose what they may do in it" },
          { what: "Its queue and its quota" },
        ]}
        verb="Remove team"
        onConfirm={() => remove.mutateAsync(removing ?? "")}
      >
        Berth removes no team that still has jobs or volumes. What it spent stays in the books.
      </Confirm>
    </Section>
  );
}

function Members({ team }: { team: string }) {
  const members = useQuery(membersQuery(team));
  const users = useQuery(usersQuery);
  const may = useMayFor()("MembersManage", { team });
  const [user, setUser] = useState("");
  const set = useChange(
    ({ user, role }: { user: string; role: Role }) =>
      data(
        api.PUT("/v1/teams/{team}/members/{user}", {
          params: { path: { team, user } },
          body: { role },
        }),
      ),
    "teams",
    "users",
    "me",
  );
  const take = useChange(
    (user: string) =>
      data(api.DELETE("/v1/teams/{team}/members/{user}", { params: { path: { team, user } } })),
    "teams",
    "users",
    "me",
  );
  const columns: Column<Member>[] = [
    {
      id: "user",
      header: "Person",
      cell: (m) => <Cut>{m.user}</Cut>,
      value: (m) => m.user,
      width: 140,
      grow: 1,
      fixed: true,
      narrow: "title",
    },
    {
      id: "role",
      header: "Role",
      cell: (m) =>
        may.ok ? (
          <Select
            aria-label={`Role of ${m.user}`}
            options={
              ROLES.some((r) => r.value === m.role)
                ? ROLES
                : [...ROLES, { value: m.role, label: ROLE_WORDS[m.role] }]
            }
            value={m.role}
            onChange={(role) => set.mutate({ user: m.user, role })}
          />
        ) : (
          ROLE_WORDS[m.role]
        ),
      value: (m) => m.role,
      width: 140,
      narrow: "end",
    },
    {
      id: "remove",
      header: "Remove",
      cell: (m) => (
        <Button
          size="sm"
          look="quiet"
          icon={Trash2}
          iconOnly
          denied={may.reason}
          onClick={() => take.mutate(m.user)}
        >
          {`Remove ${m.user} from ${team}`}
        </Button>
      ),
      width: 72,
      align: "right",
      narrow: "end",
    },
  ];
  const error = set.error ?? take.error;
  const others = (users.data ?? []).filter((u) => !members.data?.some((m) => m.user === u.name));
  return (
    <Panel title={`Members of ${team}`} flush>
      <Table
        id="admin-members"
        label={`Members of ${team}`}
        columns={columns}
        rows={members.data}
        rowId={(m) => m.user}
        error={members.error ?? undefined}
        onRetry={() => void members.refetch()}
        fit
        empty={
          <EmptyState
            title="This team has no members"
            command={`berth member set ${team} kim researcher`}
          />
        }
      />
      {error && (
        <div className="p-3">
          <ErrorNote error={error} />
        </div>
      )}
      {may.ok && (
        <form
          className="flex flex-wrap items-end gap-2 border-line border-t p-3"
          onSubmit={(e) => {
            e.preventDefault();
            if (user) set.mutate({ user, role: "researcher" }, { onSuccess: () => setUser("") });
          }}
        >
          <Field label="Add a person">
            {(p) => (
              <Input
                {...p}
                list="admin-people"
                value={user}
                placeholder="Name"
                onChange={(e) => setUser(e.target.value)}
              />
            )}
          </Field>
          <datalist id="admin-people">
            {others.map((u) => (
              <option key={u.name} value={u.name} />
            ))}
          </datalist>
          <Button type="submit" busy={set.isPending} disabled={!user}>
            Add as researcher
          </Button>
        </form>
      )}
    </Panel>
  );
}

function Projects({ team }: { team: string }) {
  const projects = useQuery(projectsQuery);
  const may = useMayFor()("ProjectsManage", { team });
  const [name, setName] = useState("");
  const add = useChange(
    (name: string) => data(api.POST("/v1/projects", { body: { name, team } })),
    "projects",
  );
  const remove = useChange(
    (project: string) =>
      data(api.DELETE("/v1/projects/{project}", { params: { path: { project } } })),
    "projects",
  );
  const mine = projects.data?.filter((p) => p.team === team);
  const error = projects.error ?? add.error ?? remove.error;
  return (
    <Panel title={`Projects of ${team}`}>
      {error && <ErrorNote error={error} />}
      {mine?.length === 0 && (
        <p className="text-muted">No projects. Costs can be told apart by project.</p>
      )}
      <ul className="flex flex-wrap gap-2">
        {mine?.map((p) => (
          <li
            key={p.name}
            className="inline-flex max-w-full items-center gap-1 rounded-md border border-line py-0.5 pr-0.5 pl-2"
          >
            <Cut>{p.name}</Cut>
            {may.ok && (
              <Button
                size="sm"
                look="quiet"
                icon={Trash2}
                iconOnly
                onClick={() => remove.mutate(p.name)}
              >
                {`Remove project ${p.name}`}
              </Button>
            )}
          </li>
        ))}
      </ul>
      {may.ok && (
        <form
          className="mt-3 flex items-end gap-2"
          onSubmit={(e) => {
            e.preventDefault();
            add.mutate(name, { onSuccess: () => setName("") });
          }}
        >
          <Field label="New project">
            {(p) => <Input {...p} value={name} onChange={(e) => setName(e.target.value)} />}
          </Field>
          <Button type="submit" busy={add.isPending} disabled={!name}>
            Add project
          </Button>
        </form>
      )}
    </Panel>
  );
}

function AddTeam({ open, onClose, teams }: { open: boolean; onClose: () => void; teams: Team[] }) {
  const [name, setName] = useState("");
  const [parent, setParent] = useState("");
  const add = useChange(
    (team: Team) => data(api.POST("/v1/teams", { body: team })),
    "teams",
    "queues",
  );
  const close = () => {
    add.reset();
    setName("");
    setParent("");
    onClose();
  };
  const save = () => add.mutate({ name, ...(parent && { parent }) }, { onSuccess: close });
  return (
    <Dialog
      open={open}
      onClose={close}
      title="Add a team"
      description="It gets a queue of its own. Set its quota under Policy and queues."
      footer={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button look="primary" busy={add.isPending} disabled={!name} onClick={save}>
            Add team
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
        <Field label="Name" hint="Small letters, digits and hyphens">
          {(p) => <Input {...p} value={name} onChange={(e) => setName(e.target.value)} />}
        </Field>
        <Field label="Below team" optional hint="Roles in that team count here too.">
          {(p) => (
            <Select
              {...p}
              options={teams.map((t) => ({ value: t.name, label: t.name }))}
              value={parent}
              onChange={setParent}
              placeholder="None"
            />
          )}
        </Field>
        {add.error && <ErrorNote error={add.error} />}
      </form>
    </Dialog>
  );
}
