import { useQuery } from "@tanstack/react-query";
import { Plus, X } from "lucide-react";
import { useState } from "react";
import type { May } from "@/api/rights";
import { useTeamNames } from "@/api/session";
import {
  Button,
  berth,
  CommandLine,
  Confirm,
  EmptyState,
  ErrorNote,
  Field,
  Panel,
  Select,
  Skeleton,
  shell,
  toast,
} from "@/design";
import type { Owner } from "../models/model";
import { modelSharesQuery, useShareChange } from "./calls";
import { FormDialog } from "./dialogs";
import { EVERY_TEAM, shareChoices, teamWords } from "./shares";

/** The teams that may read a model, and what starts and ends that. */
export function SharesTab({ owner, what, manage }: { owner: Owner; what: string; manage: May }) {
  const { team, name } = owner;
  const shares = useQuery(modelSharesQuery(team, name));
  const change = useShareChange(team, name);
  const [adding, setAdding] = useState(false);
  const [ending, end] = useState<string>();
  const teams = shares.data;
  return (
    <div className="flex max-w-180 flex-col gap-3">
      <p className="text-muted">
        Members of these teams find the {what} as <bdi>{`${team}/${name}`}</bdi>. They can read its
        description, tags, aliases and versions. They cannot change it, and they cannot read its
        files or its lineage.
      </p>
      <Panel
        title="Shared with"
        flush
        actions={
          <Button
            size="sm"
            icon={Plus}
            denied={manage.reason}
            disabled={!teams}
            onClick={() => setAdding(true)}
          >
            Share
          </Button>
        }
      >
        {shares.error && !teams ? (
          <ErrorNote error={shares.error} onRetry={() => void shares.refetch()} />
        ) : !teams ? (
          <div data-skeleton aria-busy="true" className="p-3">
            <Skeleton width="40%" />
          </div>
        ) : teams.length === 0 ? (
          <EmptyState title="Not shared">
            Only team {team} can read this {what}.
          </EmptyState>
        ) : (
          <ul className="divide-y divide-line">
            {teams.map((one) => (
              <li key={one} className="flex items-center gap-2 px-3 py-1.5">
                <bdi className="min-w-0 flex-1 truncate">{teamWords(one)}</bdi>
                <Button
                  look="quiet"
                  size="sm"
                  icon={X}
                  iconOnly
                  denied={manage.reason}
                  onClick={() => end(one)}
                >
                  {`Unshare with ${teamWords(one)}`}
                </Button>
              </li>
            ))}
          </ul>
        )}
      </Panel>
      {adding && teams && (
        <Share owner={owner} teams={teams} change={change} onClose={() => setAdding(false)} />
      )}
      <Confirm
        open={ending !== undefined}
        onClose={() => end(undefined)}
        title={`Unshare ${name} with ${teamWords(ending ?? "")}?`}
        verb="Unshare"
        onConfirm={async () => {
          if (ending === undefined) return;
          await change.mutateAsync({ with: ending, shared: false });
          toast(`Unshared ${name} with ${teamWords(ending)}`);
          end(undefined);
        }}
      >
        Code of {ending === EVERY_TEAM ? "other teams" : "that team"} that reads {`${team}/${name}`}{" "}
        fails from then on.
      </Confirm>
    </div>
  );
}

function Share({
  owner: { team, name },
  teams,
  change,
  onClose,
}: {
  owner: Owner;
  teams: readonly string[];
  change: ReturnType<typeof useShareChange>;
  onClose: () => void;
}) {
  const all = useTeamNames();
  const [to, setTo] = useState("");
  const command = berth(`models share ${shell(name)}`, { "--team": team, "--with": to });
  return (
    <FormDialog
      title={`Share ${name}`}
      verb="Share"
      ready={to !== ""}
      onClose={onClose}
      onSend={async () => {
        await change.mutateAsync({ with: to, shared: true });
        toast(`Shared ${name} with ${teamWords(to)}`);
        onClose();
      }}
    >
      <Field label="Team">
        {(p) => (
          <Select
            {...p}
            placeholder="Choose a team"
            options={shareChoices(all, team, teams).map((value) => ({
              value,
              label: value === EVERY_TEAM ? "Every team" : value,
            }))}
            value={to}
            onChange={setTo}
          />
        )}
      </Field>
      {to !== "" && <CommandLine command={command} />}
    </FormDialog>
  );
}
