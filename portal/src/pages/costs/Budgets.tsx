import { useQuery } from "@tanstack/react-query";
import { Pencil, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { budgetsQuery, queuesQuery, useChange } from "@/api/queries";
import { useMay } from "@/api/session";
import type { Budget } from "@/api/types";
import {
  Bar,
  Button,
  Confirm,
  Dialog,
  EmptyState,
  ErrorNote,
  Field,
  Input,
  Money,
  Panel,
  Select,
  Skeleton,
} from "@/design";
import { clock, money, percent } from "@/lib/format";
import { BurnDown } from "@/viz/burn-down/BurnDown";
import { forecastQuery } from "./routes";

type Per = Budget["per"];
type Action = Budget["action"];

const PER: { value: Per; label: string }[] = [
  { value: "month", label: "month" },
  { value: "week", label: "week" },
  { value: "day", label: "day" },
  { value: "once", label: "once and for all" },
];
const ACTIONS: { value: Action; label: string; does: string }[] = [
  { value: "notify", label: "Notify", does: "Berth notifies the team; jobs go on." },
  { value: "block", label: "Block", does: "No new jobs start. Running jobs go on." },
  {
    value: "lower_priority",
    label: "Lower priority",
    does: "Jobs go on when no other job needs the GPUs.",
  },
  {
    value: "pause",
    label: "Pause",
    does: "Running jobs save and stop; they go on with new money.",
  },
];

/** What teams may spend, how far it goes, and what happens at its end. */
export function Budgets({
  editing,
  onEdit,
}: {
  editing: string | undefined;
  onEdit: (queue: string | undefined) => void;
}) {
  const budgets = useQuery(budgetsQuery);
  const manages = useMay("BudgetsManage");
  const known = budgets.data?.find((b) => b.queue === editing);
  return (
    <Panel title="Budgets">
      {budgets.error ? (
        <ErrorNote error={budgets.error} onRetry={() => void budgets.refetch()} />
      ) : !budgets.data ? (
        <Skeleton height={80} />
      ) : budgets.data.length === 0 ? (
        <EmptyState
          title="No team has a budget"
          command="berth budget set nlp 5000 --per month --action block"
        >
          A budget notifies the team, blocks new jobs, lowers their priority or pauses them.
        </EmptyState>
      ) : (
        <ul className="flex flex-col divide-y divide-line">
          {budgets.data.map((budget) => (
            <One
              key={budget.queue}
              budget={budget}
              manages={manages.reason}
              onEdit={() => onEdit(budget.queue)}
            />
          ))}
        </ul>
      )}
      {editing !== undefined && (
        <EditBudget queue={editing} budget={known} onClose={() => onEdit(undefined)} />
      )}
    </Panel>
  );
}

function One({
  budget,
  manages,
  onEdit,
}: {
  budget: Budget;
  manages: string | undefined;
  onEdit: () => void;
}) {
  const [removing, setRemoving] = useState(false);
  const forecast = useQuery(forecastQuery(budget.queue));
  const remove = useChange(
    () => data(api.DELETE("/v1/budgets/{queue}", { params: { path: { queue: budget.queue } } })),
    "budgets",
    "queues",
  );
  const share = budget.limit_micros > 0 ? budget.spent_micros / budget.limit_micros : 1;
  const tone = share >= 1 ? "bad" : share >= 0.8 ? "warn" : "accent";
  const action = ACTIONS.find((a) => a.value === budget.action);
  const found = forecast.data;
  // One without a period is told of from the first day that is known, as far as it is forecast.
  const from = found && (found.period_from ?? found.points[0]?.at);
  const to = found && (found.period_to ?? found.forecast.at(-1)?.at);
  return (
    <li className="flex flex-col gap-2 py-3 first:pt-0 last:pb-0">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <bdi className="font-medium">{budget.queue}</bdi>
        <span>
          <Money micros={budget.spent_micros} /> of <Money micros={budget.limit_micros} />{" "}
          <span className="text-muted">
            {budget.per === "once" ? "in all" : `a ${budget.per}`}, {percent(share * 100)}
          </span>
        </span>
        <span className="text-muted">
          {ends(budget, found?.runs_out_at, found?.runs_out_at_p90)}
        </span>
        <span className="ml-auto inline-flex items-center gap-1">
          <span className="text-12 text-muted">at the limit: {action?.label.toLowerCase()}</span>
          {manages === undefined && (
            <>
              <Button size="sm" look="quiet" icon={Pencil} iconOnly onClick={onEdit}>
                {`Change the budget of ${budget.queue}`}
              </Button>
              <Button
                size="sm"
                look="quiet"
                icon={Trash2}
                iconOnly
                onClick={() => setRemoving(true)}
              >
                {`Remove the budget of ${budget.queue}`}
              </Button>
            </>
          )}
        </span>
      </div>
      <Bar
        label={`${budget.queue} has spent ${money(budget.spent_micros)} of ${money(budget.limit_micros)}`}
        whole={Math.max(budget.limit_micros, budget.spent_micros, budget.forecast_micros ?? 0)}
        parts={[
          { value: budget.spent_micros, label: `${money(budget.spent_micros)} spent`, tone },
          {
            value: Math.max(0, (budget.forecast_micros ?? 0) - budget.spent_micros),
            label: `${money(budget.forecast_micros)} at the end, at the rate of the last day`,
            tone: "muted",
            striped: true,
          },
        ]}
        mark={{ at: budget.limit_micros, label: `limit ${money(budget.limit_micros)}` }}
      />
      {found && from && to && (
        <BurnDown
          title={`Budget of ${budget.queue}`}
          from={Date.parse(from)}
          to={Date.parse(to)}
          now={Date.now()}
          limit={found.limit_micros}
          spent={found.points.map((p) => ({ at: Date.parse(p.at), spent: p.spent_micros }))}
          forecast={found.forecast.map((p) => ({
            at: Date.parse(p.at),
            p50: p.p50_micros,
            p90: p.p90_micros,
          }))}
          runsOutAt={found.runs_out_at ? Date.parse(found.runs_out_at) : null}
          format={(v) => money(v)}
          tick={(v) => money(v, { short: true })}
          height={170}
        />
      )}
      {forecast.error && <ErrorNote error={forecast.error} />}
      <Confirm
        open={removing}
        onClose={() => setRemoving(false)}
        title={`Remove the budget of ${budget.queue}?`}
        loses={[{ what: "Nothing limits what it spends from now on" }]}
        verb="Remove budget"
        onConfirm={() => remove.mutateAsync(undefined)}
      />
    </li>
  );
}

/** In words, on which day it is spent. */
export function ends(
  budget: Pick<Budget, "spent_micros" | "limit_micros" | "forecast_micros" | "period_to">,
  out: string | null | undefined,
  early: string | null | undefined,
): string {
  if (budget.spent_micros >= budget.limit_micros) return "spent";
  if (out) return `runs out about ${clock(out)}${early ? `, at worst ${clock(early)}` : ""}`;
  if (early) return `lasts, unless it goes badly: then until ${clock(early)}`;
  if (budget.forecast_micros != null)
    return budget.forecast_micros > budget.limit_micros
      ? `heads for ${money(budget.forecast_micros)}`
      : "lasts";
  return "";
}

function EditBudget({
  queue,
  budget,
  onClose,
}: {
  queue: string;
  budget: Budget | undefined;
  onClose: () => void;
}) {
  const queues = useQuery(queuesQuery);
  const [name, setName] = useState(queue);
  const [limit, setLimit] = useState(budget ? String(budget.limit_micros / 1e6) : "");
  const [per, setPer] = useState<Per>(budget?.per ?? "month");
  const [action, setAction] = useState<Action>(budget?.action ?? "notify");
  const save = useChange(
    () =>
      data(
        api.PUT("/v1/budgets/{queue}", {
          params: { path: { queue: name } },
          body: {
            limit_micros: Math.round(Number(limit) * 1e6),
            per,
            action,
            thresholds_milli: budget?.thresholds_milli ?? [800],
          },
        }),
      ),
    "budgets",
    "queues",
  );
  const bad = limit !== "" && !(Number(limit) >= 0);
  const send = () => save.mutate(undefined, { onSuccess: onClose });
  return (
    <Dialog
      open
      onClose={onClose}
      title={budget ? `Budget of ${queue}` : "Set a budget"}
      description="It pays for the queue and all queues below it."
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            busy={save.isPending}
            disabled={!name || limit === "" || bad}
            onClick={send}
          >
            Save budget
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
        <Field label="Queue">
          {(p) => (
            <Select
              {...p}
              options={(queues.data ?? []).map((q) => ({ value: q.name, label: q.name }))}
              value={name || undefined}
              onChange={setName}
              placeholder="Choose"
              disabled={budget !== undefined}
            />
          )}
        </Field>
        <Field label="Limit in dollars" error={bad ? "A budget is 0 or more." : undefined}>
          {(p) => (
            <Input
              {...p}
              type="number"
              min={0}
              step="any"
              value={limit}
              onChange={(e) => setLimit(e.target.value)}
            />
          )}
        </Field>
        <Field label="Per">
          {(p) => <Select {...p} options={PER} value={per} onChange={setPer} />}
        </Field>
        <Field label="At the limit" hint={ACTIONS.find((a) => a.value === action)?.does}>
          {(p) => <Select {...p} options={ACTIONS} value={action} onChange={setAction} />}
        </Field>
        {save.error && <ErrorNote error={save.error} />}
      </form>
    </Dialog>
  );
}
