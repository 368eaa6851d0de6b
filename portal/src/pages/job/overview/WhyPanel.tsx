import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { helpPage } from "@/api/error";
import { whyQuery } from "@/api/queries";
import type { Job, Why } from "@/api/types";
import { ErrorNote, Money, None, Panel, Skeleton } from "@/design";
import { clock, percent, plural } from "@/lib/format";
import { useNow } from "@/lib/now";
import { localTimes, promisedAt, type Reason, sentence, type WhyModel, whyModel } from "../why";
import { ChoiceDialog } from "./ChoiceDialog";
import { type Priced, priceChange, useChoices } from "./choices";

/** Why it waits, what clears that, when it starts, and what would start it sooner. */
export function WhyPanel({ job }: { job: Job }) {
  const why = useQuery(whyQuery(job.id));
  return (
    <Panel title="Why it waits">
      {why.data ? (
        <Told job={job} why={why.data} />
      ) : why.error ? (
        <ErrorNote error={why.error} onRetry={() => void why.refetch()} />
      ) : (
        <div data-skeleton aria-busy="true" className="flex flex-col gap-3">
          <Skeleton width="60%" height={20} />
          <Skeleton width="35%" />
          <Skeleton width="45%" height={28} />
        </div>
      )}
    </Panel>
  );
}

function Told({ job, why }: { job: Job; why: Why }) {
  const now = useNow(15_000);
  const model = whyModel(why, now);
  return (
    <div className="flex flex-col gap-4">
      <div className="flex max-w-180 flex-col gap-1">
        {model.main ? (
          <Main reason={model.main} />
        ) : (
          <p className="text-16">Nothing stands in its way; it starts next.</p>
        )}
        <Start model={model} why={why} now={now} />
      </div>
      {model.others.length > 0 && (
        <div className="max-w-180">
          <h3 className="mb-1 text-12 text-muted">Also in its way</h3>
          <ul className="flex flex-col gap-1.5">
            {model.others.map((r) => (
              <li key={r.code + r.sentence} className="border-line-strong border-l-2 pl-3">
                {r.sentence} <Clears reason={r} />
              </li>
            ))}
          </ul>
        </div>
      )}
      <Sooner job={job} why={why} model={model} now={now} />
      {why.also.length > 0 && (
        <ul className="text-12 text-muted">
          {why.also.map((line) => (
            <li key={line}>{localTimes(line, now)}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Main({ reason }: { reason: Reason }) {
  return (
    <>
      <p className="text-16 wrap-anywhere">{reason.sentence}</p>
      <p>
        <Clears reason={reason} />
      </p>
    </>
  );
}

function Clears({ reason }: { reason: Reason }) {
  return (
    <span className="text-muted">
      {reason.clears && <>Clears when: {lower(reason.clears)} </>}
      <a
        href={helpPage(reason.code)}
        className="whitespace-nowrap text-12 text-accent hover:underline"
      >
        {reason.code}
      </a>
    </span>
  );
}

/** Within a sentence; GPUs stay GPUs. */
function lower(text: string) {
  return /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

function Start({ model, why, now }: { model: WhyModel; why: Why; now: number }) {
  if (model.p50 === undefined)
    return (
      <p className="text-muted">
        {model.beyond
          ? "It starts later than can be foreseen."
          : why.clears
            ? sentence(`it starts when ${why.clears}`, now)
            : promisedAt(why) !== undefined
              ? `It starts by ${clock(promisedAt(why), now)}; when it is likely to start is not forecast yet.`
              : "When it starts is not forecast yet."}
      </p>
    );
  return (
    <p className="font-medium text-14">
      Starts about {clock(model.p50, now)}
      <span className="font-normal text-muted">
        {" "}
        (
        {model.p90 === undefined
          ? "the latest start cannot be foreseen"
          : `90\u00a0% chance by ${clock(model.p90, now)}`}
        )
      </span>
      {why.clears && (
        <span className="font-normal text-muted">
          , {sentence(`when ${why.clears}`, now).toLowerCase()}
        </span>
      )}
    </p>
  );
}

function Sooner({ job, why, model, now }: { job: Job; why: Why; model: WhyModel; now: number }) {
  const { choices, base, file } = useChoices(job, why, model.choices);
  const [open, setOpen] = useState<string>();
  const chosen = choices.find((c) => c.id === open);
  if (choices.length === 0)
    return <p className="text-muted">No single change that you may make would start it sooner.</p>;
  return (
    <div>
      <h3 className="mb-1.5 text-12 text-muted">What would start it sooner</h3>
      <ul className="flex max-w-180 flex-col divide-y divide-line overflow-hidden rounded-md border border-line-strong">
        {choices.map((c) => (
          <li key={c.id}>
            <Row
              choice={c}
              base={base?.total_micros}
              now={now}
              gpus={why.needs}
              onOpen={() => setOpen(c.id)}
            />
          </li>
        ))}
      </ul>
      {chosen && (
        <ChoiceDialog
          job={job}
          choice={chosen}
          base={base}
          file={file}
          p50={model.p50}
          onClose={() => setOpen(undefined)}
        />
      )}
    </div>
  );
}

function Row({
  choice: c,
  base,
  now,
  gpus,
  onOpen,
}: {
  choice: Priced;
  base: number | null | undefined;
  now: number;
  gpus: string;
  onOpen: () => void;
}) {
  const inside = (
    <>
      <span className="min-w-0 flex-1">
        <span className="font-medium wrap-anywhere">{c.label}</span>
        <span className="block text-12 text-muted">
          {startWords(c.starts, now)}
          {c.stops > 0 && ` · stops ${plural(c.stops, "running job")}`}
        </span>
      </span>
      <span className="shrink-0 text-right tabular-nums">
        {c.pricing ? (
          <Skeleton width={56} />
        ) : c.price !== undefined ? (
          <Money micros={c.price} />
        ) : (
          <None />
        )}
        <span className="block text-12 text-muted">
          {changeWords(priceChange(base, c.price))}
          {" for "}
          {asked(c.plan?.asks ?? gpus)}
        </span>
      </span>
    </>
  );
  const shape = "flex w-full items-center gap-4 px-3 py-2 text-left";
  if (c.deed.kind === "advice") return <div className={shape}>{inside}</div>;
  return (
    <button
      type="button"
      onClick={onOpen}
      className={`${shape} outline-offset-[-2px] hover:bg-surface-2`}
    >
      {inside}
      <span aria-hidden className="text-faint">
        ›
      </span>
    </button>
  );
}

function asked(asks: string): string {
  return /^[\d.]+$/.test(asks) ? `${asks} ${asks === "1" ? "GPU" : "GPUs"}` : asks;
}

export function startWords(starts: number | undefined, now: number): string {
  return starts === undefined || starts <= now
    ? "starts now"
    : `starts about ${clock(starts, now)}`;
}

export function changeWords(change: number | undefined): string {
  if (change === undefined) return "same price";
  return `${change > 0 ? "+" : "−"}${percent(Math.abs(change))}`;
}
