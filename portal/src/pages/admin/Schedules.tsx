import { useQuery } from "@tanstack/react-query";
import { Pause, Play, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { schedulesQuery, useChange } from "@/api/queries";
import { useMayFor } from "@/api/session";
import type { Schedule } from "@/api/types";
import {
  Button,
  type Column,
  Confirm,
  Cut,
  EmptyState,
  ErrorNote,
  None,
  Table,
  TextLink,
  Time,
} from "@/design";
import { Section } from "./Layout";

/** Jobs that Berth submits by the calendar. */
export function Schedules() {
  const schedules = useQuery(schedulesQuery);
  const may = useMayFor();
  const [removing, setRemoving] = useState<Schedule>();
  const act = useChange(
    ({ schedule, to }: { schedule: string; to: "pause" | "resume" }) =>
      data(
        to === "pause"
          ? api.POST("/v1/schedules/{schedule}/pause", { params: { path: { schedule } } })
          : api.POST("/v1/schedules/{schedule}/resume", { params: { path: { schedule } } }),
      ),
    "schedules",
  );
  const remove = useChange(
    (schedule: string) =>
      data(api.DELETE("/v1/schedules/{schedule}", { params: { path: { schedule } } })),
    "schedules",
  );
  const columns: Column<Schedule>[] = [
    {
      id: "name",
      header: "Schedule",
      cell: (s) => <Cut>{s.name}</Cut>,
      value: (s) => s.name,
      width: 150,
      grow: 1,
      fixed: true,
      narrow: "title",
    },
    {
      id: "when",
      header: "When",
      cell: (s) => (
        <span className="flex min-w-0 items-baseline gap-2">
          <code className="text-12">{s.cron}</code>
          <span className="truncate text-12 text-muted">{s.timezone}</span>
        </span>
      ),
      value: (s) => `${s.cron} ${s.timezone}`,
      width: 180,
      grow: 1,
      narrow: "meta",
    },
    {
      id: "next",
      header: "Next",
      cell: (s) =>
        s.paused ? <Cut>{`paused${s.reason ? `: ${s.reason}` : ""}`}</Cut> : <Time at={s.next} />,
      value: (s) => (s.paused ? "paused" : s.next),
      width: 120,
      grow: 1,
      narrow: "end",
    },
    {
      id: "last",
      header: "Last job",
      cell: (s) =>
        s.last_job ? (
          <TextLink to="/jobs/$job" params={{ job: String(s.last_job) }}>
            {String(s.last_job)}
          </TextLink>
        ) : (
          <None />
        ),
      value: (s) => (s.last_job ? String(s.last_job) : null),
      width: 80,
      align: "right",
      narrow: "hide",
    },
    {
      id: "user",
      header: "Owner, team",
      cell: (s) => <Cut>{`${s.user}, ${s.team}`}</Cut>,
      value: (s) => `${s.user}, ${s.team}`,
      width: 130,
      narrow: "meta",
    },
    {
      id: "act",
      header: "Actions",
      cell: (s) => {
        const allowed = may("SchedulesManage", { team: s.team, user: s.user });
        return (
          <span className="inline-flex gap-1">
            <Button
              size="sm"
              look="quiet"
              icon={s.paused ? Play : Pause}
              iconOnly
              denied={allowed.reason}
              onClick={() => act.mutate({ schedule: s.id, to: s.paused ? "resume" : "pause" })}
            >
              {`${s.paused ? "Resume" : "Pause"} ${s.name}`}
            </Button>
            <Button
              size="sm"
              look="quiet"
              icon={Trash2}
              iconOnly
              denied={allowed.reason}
              onClick={() => setRemoving(s)}
            >
              {`Remove ${s.name}`}
            </Button>
          </span>
        );
      },
      width: 88,
      align: "right",
      narrow: "end",
    },
  ];
  return (
    <Section id="schedules" command="berth schedule list" fill>
      {act.error && (
        <div className="p-3">
          <ErrorNote error={act.error} />
        </div>
      )}
      <Table
        id="admin-schedules"
        label="Schedules"
        columns={columns}
        rows={schedules.data}
        rowId={(s) => s.id}
        error={schedules.error ?? undefined}
        onRetry={() => void schedules.refetch()}
        empty={
          <EmptyState title="Nothing is scheduled" command="berth run -f nightly.yaml">
            A job file with <code>schedule: {"{cron: …}"}</code> is submitted again and again.
          </EmptyState>
        }
      />
      <Confirm
        open={removing !== undefined}
        onClose={() => setRemoving(undefined)}
        title={`Remove schedule ${removing?.name}?`}
        loses={[{ what: "It submits no more jobs. Those that it submitted go on" }]}
        verb="Remove schedule"
        onConfirm={() => remove.mutateAsync(removing?.id ?? "")}
      />
    </Section>
  );
}
