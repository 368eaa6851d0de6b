import { useQuery } from "@tanstack/react-query";
import { Ban, Plus } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { tokensQuery, useChange } from "@/api/queries";
import { useMe } from "@/api/session";
import type { Scope, Token } from "@/api/types";
import {
  Button,
  type Column,
  CommandLine,
  Confirm,
  Cut,
  Dialog,
  EmptyState,
  ErrorNote,
  Field,
  Input,
  None,
  Note,
  Segmented,
  Select,
  Table,
  Time,
} from "@/design";
import { Section } from "./Layout";

const SCOPES: { value: Scope; label: string }[] = [
  { value: "read", label: "Reads only" },
  { value: "jobs", label: "Reads, and runs jobs" },
  { value: "all", label: "All that its owner may" },
];
const LASTS = [
  { value: "1d", label: "a day" },
  { value: "7d", label: "a week" },
  { value: "30d", label: "30 days" },
  { value: "90d", label: "90 days" },
  { value: "365d", label: "a year" },
];

type State = "active" | "expired" | "revoked";

function stateOf(token: Token): State {
  if (token.revoked) return "revoked";
  return token.expires && Date.parse(token.expires) <= Date.now() ? "expired" : "active";
}

/** What programs sign in with. A secret is shown once, when it is made. */
export function Tokens() {
  const tokens = useQuery(tokensQuery);
  const me = useMe();
  const [which, setWhich] = useState<"active" | "all">("active");
  const [adding, setAdding] = useState(false);
  const [ending, setEnding] = useState<Token>();
  const revoke = useChange(
    (token: string) => data(api.DELETE("/v1/tokens/{token}", { params: { path: { token } } })),
    "tokens",
  );
  const rows = tokens.data?.filter((t) => which === "all" || stateOf(t) === "active");
  const columns: Column<Token>[] = [
    {
      id: "name",
      header: "Token",
      cell: (t) => <Cut>{t.name}</Cut>,
      value: (t) => t.name,
      width: 160,
      grow: 1,
      fixed: true,
      narrow: "title",
    },
    {
      id: "user",
      header: "Owner",
      cell: (t) => <Cut>{t.user}</Cut>,
      value: (t) => t.user,
      width: 110,
      narrow: "meta",
    },
    {
      id: "scope",
      header: "Scope",
      cell: (t) => SCOPES.find((s) => s.value === t.scope)?.label ?? t.scope,
      value: (t) => t.scope,
      width: 170,
      narrow: "meta",
    },
    {
      id: "state",
      header: "State",
      cell: (t) => stateOf(t),
      value: stateOf,
      width: 80,
      narrow: "end",
    },
    {
      id: "used",
      header: "Last used",
      cell: (t) => (t.last_used ? <Time at={t.last_used} /> : <None />),
      value: (t) => t.last_used,
      width: 100,
      align: "right",
      narrow: "hide",
    },
    {
      id: "expires",
      header: "Expires",
      cell: (t) => (t.expires ? <Time at={t.expires} /> : "never"),
      value: (t) => t.expires,
      width: 100,
      align: "right",
      narrow: "hide",
    },
    {
      id: "id",
      header: "Id",
      cell: (t) => <code className="text-12">{t.id}</code>,
      value: (t) => t.id,
      width: 140,
      hidden: true,
      narrow: "hide",
    },
    {
      id: "end",
      header: "Revoke",
      cell: (t) =>
        stateOf(t) === "active" && (
          <Button size="sm" look="quiet" icon={Ban} iconOnly onClick={() => setEnding(t)}>
            {`Revoke token ${t.name}`}
          </Button>
        ),
      width: 72,
      align: "right",
      narrow: "end",
    },
  ];
  return (
    <Section
      id="tokens"
      command="berth token list"
      fill
      actions={
        <Button look="primary" icon={Plus} onClick={() => setAdding(true)}>
          New token
        </Button>
      }
    >
      <Table
        id="admin-tokens"
        label="Tokens"
        columns={columns}
        rows={rows}
        rowId={(t) => t.id}
        error={tokens.error ?? undefined}
        onRetry={() => void tokens.refetch()}
        csv="tokens"
        toolbar={
          <Segmented
            label="Which tokens"
            options={[
              { value: "active", label: "Active" },
              { value: "all", label: "All" },
            ]}
            value={which}
            onChange={setWhich}
          />
        }
        empty={
          <EmptyState
            title="There are no tokens"
            command="berth token create laptop --scope jobs"
          />
        }
      />
      <NewToken open={adding} onClose={() => setAdding(false)} user={me?.user ?? ""} />
      <Confirm
        open={ending !== undefined}
        onClose={() => setEnding(undefined)}
        title={`Revoke token ${ending?.name}?`}
        loses={[
          { what: "Programs and browsers that use it are signed out at once" },
          {
            what: "Tokens that its user made with it are revoked with it, and those made with these",
          },
        ]}
        verb="Revoke token"
        onConfirm={() => revoke.mutateAsync(ending?.id ?? "")}
      />
    </Section>
  );
}

function NewToken({ open, onClose, user }: { open: boolean; onClose: () => void; user: string }) {
  const [name, setName] = useState("");
  const [scope, setScope] = useState<Scope>("jobs");
  const [lasts, setLasts] = useState("30d");
  const make = useChange(
    () => data(api.POST("/v1/tokens", { body: { name, scope, expires_in: lasts } })),
    "tokens",
  );
  const close = () => {
    make.reset();
    setName("");
    onClose();
  };
  const made = make.data;
  return (
    <Dialog
      open={open}
      onClose={close}
      title={made ? `Token ${made.token.name}` : "New token"}
      {...(made ? {} : { description: `It acts as ${user}, and may do no more than you.` })}
      footer={
        made ? (
          <Button look="primary" onClick={close}>
            Done
          </Button>
        ) : (
          <>
            <Button onClick={close}>Cancel</Button>
            <Button
              look="primary"
              busy={make.isPending}
              disabled={!name}
              onClick={() => make.mutate(undefined)}
            >
              Create token
            </Button>
          </>
        )
      }
    >
      {made ? (
        <div className="flex flex-col gap-3">
          <Note tone="warn">
            Copy the secret now. Berth keeps only its hash and never shows it again.
          </Note>
          <div className="rounded-md border border-line bg-surface">
            <CommandLine command={made.secret} />
          </div>
        </div>
      ) : (
        <form
          className="flex flex-col gap-3"
          onSubmit={(e) => {
            e.preventDefault();
            if (name) make.mutate(undefined);
          }}
        >
          <Field label="Name" hint="What it is for: laptop, ci, prometheus">
            {(p) => <Input {...p} value={name} onChange={(e) => setName(e.target.value)} />}
          </Field>
          <Field label="Scope">
            {(p) => <Select {...p} options={SCOPES} value={scope} onChange={setScope} />}
          </Field>
          <Field label="Expires after">
            {(p) => <Select {...p} options={LASTS} value={lasts} onChange={setLasts} />}
          </Field>
          {make.error && <ErrorNote error={make.error} />}
        </form>
      )}
    </Dialog>
  );
}
