import { CircleAlert, CircleCheck, Clock } from "lucide-react";
import type { ReactNode } from "react";
import { helpPage } from "@/api/error";
import type { Plan } from "@/api/types";
import { Facts, Money } from "@/design";
import { clock, count, plural, relative, span } from "@/lib/format";
import { useNow } from "@/lib/now";
import { NEVER } from "./model/never";
import { Sentence } from "./sentence";

/** A plan as it is read: when, for how much, where, and what stands in its way. */
export function Found({ plan, hold }: { plan: Plan; hold: boolean }) {
  return (
    <>
      <When plan={plan} hold={hold} />
      <Price plan={plan} />
      <Where plan={plan} />
      <Blockers plan={plan} />
    </>
  );
}

/** The same in one line, for where there is little room. */
export function InBrief({ plan, hold }: { plan: Plan; hold: boolean }) {
  const now = useNow(15_000);
  const when = hold
    ? "Held"
    : plan.starts_now
      ? "Starts now"
      : plan.eta?.p50
        ? `About ${clock(plan.eta.p50, now)}`
        : "Start unknown";
  return (
    <>
      {when},{" "}
      <Money micros={plan.total_micros ?? plan.price_micros_per_hour} rate={!plan.total_micros} />
    </>
  );
}

function When({ plan, hold }: { plan: Plan; hold: boolean }) {
  const now = useNow(15_000);
  const p50 = plan.eta?.p50;
  const p90 = plan.eta?.p90;
  const soon = p50 ? Date.parse(p50) - now < 60_000 : false;
  const spread = p50 && p90 && clock(p90, now) !== clock(p50, now);
  let icon = <Clock size={16} aria-hidden className="shrink-0 text-waiting" />;
  let text: string;
  let more: ReactNode = null;
  if (hold) {
    text = "Waits until it is released";
  } else if (plan.starts_now) {
    icon = <CircleCheck size={16} aria-hidden className="shrink-0 text-good" />;
    text = "Starts now";
  } else if (p50) {
    text = soon ? "Starts in a moment" : `Starts about ${clock(p50, now)}`;
    more = (
      <>
        {!soon && relative(p50, now)}
        {spread && `${soon ? "" : "; "}90\u00a0% chance by ${clock(p90, now)}`}
      </>
    );
  } else if (plan.blockers.some((b) => NEVER.has(b.code))) {
    icon = <CircleAlert size={16} aria-hidden className="shrink-0 text-bad" />;
    text = "Would never start here";
  } else text = "Its start cannot be forecast";
  return (
    <div>
      <p className="flex items-center gap-2 font-semibold text-16">
        {icon}
        {text}
      </p>
      {more && <p className="mt-0.5 text-muted">{more}</p>}
    </div>
  );
}

function Price({ plan }: { plan: Plan }) {
  const most = plan.most_micros;
  return (
    <div className="grid grid-cols-2 gap-px overflow-hidden rounded-md border border-line bg-line *:bg-surface *:px-3 *:py-2">
      <div>
        <div className="text-12 text-muted">Price</div>
        <div className="font-semibold text-16">
          <Money micros={plan.price_micros_per_hour} rate />
        </div>
      </div>
      <div>
        <div className="text-12 text-muted">
          {most === plan.total_micros ? "In total, at most" : "In total, about"}
        </div>
        <div className="font-semibold text-16">
          <Money micros={plan.total_micros} />
        </div>
      </div>
      <div className="col-span-2 text-12 text-muted">
        {plan.estimate_ms ? `For ${span(plan.estimate_ms)}` : "For as long as it runs"}
        {plan.elements > 1 && `, ${count(plan.elements)} runs`}
        {most !== null && most !== undefined && most !== plan.total_micros && (
          <>
            ; at its time limit <Money micros={most} />
          </>
        )}
        {plan.declared && ". These GPUs are declared, not real"}.
      </div>
    </div>
  );
}

const MOST_PLACES = 6;

function Where({ plan }: { plan: Plan }) {
  const places = plan.places.slice(0, MOST_PLACES);
  return (
    <Facts
      items={[
        ["Asks for", <span key="asks">{plan.asks === "0" ? "no GPUs" : asks(plan.asks)}</span>],
        ["Team", <bdi key="team">{plan.team}</bdi>],
        places.length > 0 && [
          "Where",
          <ul key="where">
            {places.map((p) => (
              <li key={p.task} className="wrap-anywhere">
                <bdi>{p.node}</bdi>
                {p.gpus.length > 0 && (
                  <span className="text-muted">
                    {" "}
                    {p.model ?? "GPU"} {ranges(p.gpus)}
                  </span>
                )}
              </li>
            ))}
            {plan.places.length > MOST_PLACES && (
              <li className="text-muted">and {count(plan.places.length - MOST_PLACES)} more</li>
            )}
          </ul>,
        ],
      ]}
    />
  );
}

const asks = (text: string) => (/^\d+(\.\d+)?$/.test(text) ? plural(Number(text), "GPU") : text);

/** `0, 1, 2, 5` as `0–2, 5`. */
export function ranges(indices: readonly number[]): string {
  const all = [...indices].sort((a, b) => a - b);
  const out: string[] = [];
  for (let i = 0; i < all.length; i += 1) {
    const from = all[i] as number;
    let to = from;
    while (all[i + 1] === to + 1) {
      to += 1;
      i += 1;
    }
    out.push(from === to ? String(from) : `${from}–${to}`);
  }
  return out.join(", ");
}

function Blockers({ plan }: { plan: Plan }) {
  if (plan.blockers.length === 0) return null;
  return (
    <div>
      <h3 className="mb-1 font-medium">{plan.starts_now ? "Good to know" : "What it waits for"}</h3>
      <ul className="flex flex-col gap-1.5">
        {plan.blockers.map((b) => (
          <li key={b.code + b.text} className="wrap-anywhere">
            <Sentence text={b.text} />{" "}
            <a
              href={helpPage(b.code)}
              className="whitespace-nowrap text-12 text-accent hover:underline"
            >
              {b.code}
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}
