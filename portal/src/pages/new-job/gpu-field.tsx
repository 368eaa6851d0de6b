import type { ReactNode } from "react";
import { Checkbox, Field, Input, Money, Segmented, Select } from "@/design";
import { bytes, count, money } from "@/lib/format";
import { useJobForm, useTyped } from "./context";
import { Cell, InYaml, Problems } from "./fields";
import {
  canBeCut,
  type GpuKind,
  type GpuWish,
  profilesOf,
  readGpus,
  writeGpus,
} from "./model/gpus";
import { type ModelFact, matching, supplyOf } from "./model/models";
import { useModels } from "./use-models";

const KINDS = [
  { value: "whole", label: "Whole GPUs" },
  { value: "part", label: "Part of one" },
  { value: "mig", label: "MIG instance" },
  { value: "shared", label: "Shared" },
] as const;

/** What is asked of each node: how much of which GPU, with what is free and what it costs. */
export function GpuFields() {
  const form = useJobForm();
  const models = useModels();
  const wish = readGpus(form.get("gpus"));
  const change = (next: Partial<GpuWish>) =>
    wish && form.set("gpus", writeGpus({ ...wish, ...next }));
  if (!wish)
    return (
      <Cell of={1}>
        <InYaml label="GPUs" />
        <Problems of="gpus" />
      </Cell>
    );
  return (
    <>
      <Cell of={1}>
        <Segmented
          label="How much of a GPU"
          options={KINDS}
          value={wish.kind}
          onChange={(kind: GpuKind) => change(asKind(kind, wish, models))}
        />
      </Cell>
      <Cell of={3}>
        <Amount wish={wish} onChange={(amount) => change({ amount })} />
      </Cell>
      <Cell of="rest">
        <ModelSelect wish={wish} models={models} onChange={(list) => change({ models: list })} />
      </Cell>
      {wish.kind === "mig" && (
        <Cell of={3}>
          <Profile wish={wish} onChange={(profile) => change({ profile })} />
        </Cell>
      )}
      {form.problem("gpus") && (
        <Cell of={1}>
          <Problems of="gpus" />
        </Cell>
      )}
      <Others wish={wish} models={models} onChange={(list) => change({ models: list })} />
    </>
  );
}

/** What stays when another kind is chosen, and a value to begin with. */
function asKind(kind: GpuKind, wish: GpuWish, models: readonly ModelFact[]): Partial<GpuWish> {
  const first = models.find((m) => canBeCut(m.model))?.model ?? "A100";
  const model = wish.models[0] && canBeCut(wish.models[0]) ? wish.models : [first];
  switch (kind) {
    case "whole":
      return { kind, amount: "1", profile: "" };
    case "part":
      return { kind, amount: "0.5", profile: "" };
    case "mig":
      return {
        kind,
        amount: "1",
        profile: profilesOf(model[0] ?? "")[0] ?? "1g.10gb",
        models: model,
      };
    case "shared":
      return { kind, amount: "1", profile: "" };
  }
}

function Amount({ wish, onChange }: { wish: GpuWish; onChange: (amount: string) => void }) {
  const form = useJobForm();
  const [typed, setTyped] = useTyped(wish.amount, onChange, (t) =>
    t === "" ? EMPTY_MEANS[wish.kind] : t,
  );
  const part = wish.kind === "part";
  return (
    <Field
      label={LABELS[wish.kind]}
      hint={part ? "Such as 0.5 or 10GB" : undefined}
      error={form.problem("gpus") ? " " : undefined}
    >
      {(p) => (
        <Input
          {...p}
          type={part ? "text" : "number"}
          inputMode={part ? "text" : "numeric"}
          min={wish.kind === "whole" ? 0 : 1}
          step={1}
          value={typed}
          disabled={form.locked}
          onChange={(e) => setTyped(e.target.value)}
        />
      )}
    </Field>
  );
}

const LABELS: Record<GpuKind, string> = {
  whole: "GPUs",
  part: "How much of it",
  mig: "Instances",
  shared: "Shares",
};
/** What the file then says. */
const EMPTY_MEANS: Record<GpuKind, string> = { whole: "0", part: "0.5", mig: "1", shared: "1" };

function ModelSelect({
  wish,
  models,
  onChange,
}: {
  wish: GpuWish;
  models: readonly ModelFact[];
  onChange: (models: string[]) => void;
}) {
  const form = useJobForm();
  const chosen = wish.models[0] ?? "";
  const memories = [...new Set(models.map((m) => m.memory_bytes))].sort((a, b) => a - b);
  const known = chosen === "" || models.some((m) => m.model === chosen);
  const least = memories.map((m) => ({
    value: `${Math.floor(m / 1e9)}GB+`,
    label: `Any with ${bytes(m)} or more`,
  }));
  const inLeast = least.some((l) => l.value === chosen);
  const options = [
    ...models.map((m) => ({ value: m.model, label: line(m) })),
    ...(wish.kind === "whole" && memories.length > 1
      ? least
      : inLeast
        ? least.filter((l) => l.value === chosen)
        : []),
    ...(known || inLeast ? [] : [{ value: chosen, label: unknown(chosen, models) }]),
  ];
  return (
    <Field label="GPU model" hint={<Supply wish={wish} models={models} />}>
      {(p) => (
        <Select
          {...p}
          className="w-full"
          value={chosen}
          disabled={form.locked}
          onChange={(model: string) =>
            onChange(model ? [model, ...wish.models.slice(1).filter((m) => m !== model)] : [])
          }
          options={[
            ...(wish.kind === "mig" ? [] : [{ value: "", label: "Any model" }]),
            ...options,
          ]}
        />
      )}
    </Field>
  );
}

const line = (m: ModelFact) =>
  `${m.model}: ${count(m.free)} of ${count(m.total)} free, ${money(m.price_micros_per_hour)}/h`;

function unknown(model: string, models: readonly ModelFact[]): string {
  const found = matching(model, models);
  if (found.length === 0) return models.length > 0 ? `${model}: none here` : model;
  return `${model}: ${count(found.reduce((n, m) => n + m.free, 0))} of ${count(found.reduce((n, m) => n + m.total, 0))} free`;
}

function Profile({ wish, onChange }: { wish: GpuWish; onChange: (profile: string) => void }) {
  const form = useJobForm();
  const known = profilesOf(wish.models[0] ?? "");
  const all = known.includes(wish.profile) ? known : [wish.profile, ...known];
  return (
    <Field label="Profile">
      {(p) => (
        <Select
          {...p}
          className="w-full"
          value={wish.profile}
          disabled={form.locked}
          onChange={onChange}
          options={all.map((v) => ({ value: v, label: v }))}
        />
      )}
    </Field>
  );
}

/** How many there are of what is chosen, and for how much. */
function Supply({ wish, models }: { wish: GpuWish; models: readonly ModelFact[] }): ReactNode {
  if (models.length === 0) return null;
  const s = supplyOf(wish.models, models);
  if (s.total === 0) return <span className="text-warn">No node here has such GPUs.</span>;
  return (
    <>
      {count(s.free)} of {count(s.total)} free now, <Money micros={s.least} rate />
      {s.most !== s.least && (
        <>
          {" to "}
          <Money micros={s.most} rate />
        </>
      )}{" "}
      for a whole one.
    </>
  );
}

/** Second choices: the more models a job takes, the sooner it starts. */
function Others({
  wish,
  models,
  onChange,
}: {
  wish: GpuWish;
  models: readonly ModelFact[];
  onChange: (models: string[]) => void;
}) {
  const form = useJobForm();
  const [first] = wish.models;
  const others = models.filter(
    (m) => m.model !== first && !matching(first ?? "", models).includes(m),
  );
  if (!first || wish.kind === "mig" || first.endsWith("+") || others.length === 0) return null;
  return (
    <Cell of={1}>
      <fieldset className="flex flex-wrap gap-x-4 gap-y-1">
        <legend className="mb-1 font-medium text-12 text-muted">
          Takes instead, if that starts sooner
        </legend>
        {others.slice(0, 12).map((m) => (
          <Checkbox
            key={m.model}
            label={line(m)}
            checked={wish.models.includes(m.model)}
            disabled={form.locked}
            onChange={(e) =>
              onChange(
                e.target.checked
                  ? [...wish.models, m.model]
                  : wish.models.filter((other) => other !== m.model),
              )
            }
          />
        ))}
      </fieldset>
    </Cell>
  );
}
