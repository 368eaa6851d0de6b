import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { whyQuery } from "@/api/queries";
import type { Job } from "@/api/types";
import { Cut, Money, Span, Stat, Stats, Time } from "@/design";
import { clock, gpus, millis, money, ordinal, plural, span } from "@/lib/format";
import { useNow } from "@/lib/now";
import { useProjection } from "./data";
import { FINAL } from "./project";
import { promisedAt } from "./why";

/** The first that the eye finds: what comes next, when, and what it costs. */
export function Headline({ job }: { job: Job }) {
  const now = useNow(15_000);
  const over = FINAL.has(job.state);
  const p = useProjection(job, now);
  const waits = job.state === "pending" || job.state === "paused";
  const cost = over ? (
    <Stat label="Cost" note={plural(job.attempts, "attempt")}>
      <Money micros={job.cost_micros} />
    </Stat>
  ) : (
    <Stat
      label="Cost so far → projected"
      note={
        p.most === undefined
          ? "no time limit is known"
          : p.projected === p.most
            ? "if it runs until its time limit"
            : `at most ${money(p.most)}, at its time limit`
      }
    >
      <span className="max-sm:block max-sm:text-14 max-sm:leading-5">
        <Money micros={job.cost_micros} />
        {p.projected !== undefined && p.projected > 0 && (
          <span className="text-muted max-sm:block">
            {" → ~"}
            <Money micros={p.projected} />
          </span>
        )}
      </span>
    </Stat>
  );
  return (
    <Stats>
      {waits ? (
        <Starts job={job} />
      ) : over ? (
        <Ended job={job} />
      ) : (
        <Ends job={job} p={p} now={now} />
      )}
      {cost}
      <Stat label={waits ? "Asks for" : over ? "Held" : "Holds"} note={holdsNote(job)}>
        {job.gpus_milli > 0 ? (
          <>
            {gpus(job.gpus_milli)}
            <span className="text-muted"> {job.gpus_milli === 1000 ? "GPU" : "GPUs"}</span>
          </>
        ) : (
          "no GPU"
        )}
      </Stat>
      <Stat label={waits ? "Waits since" : "Submitted"} note={waited(job)}>
        <Time at={job.submitted} as="clock" />
      </Stat>
    </Stats>
  );
}

function Starts({ job }: { job: Job }) {
  const why = useQuery({ ...whyQuery(job.id), enabled: job.state === "pending" }).data;
  const p50 = why?.eta?.p50 ?? job.eta;
  const p90 = why?.eta?.p90 ?? job.eta_p90;
  const position = why?.position ?? job.position;
  const now = useNow(60_000);
  const place = position
    ? `${ordinal(position)}${why && why.waiting > 0 ? ` of ${why.waiting}` : ""} in ${job.team}`
    : undefined;
  const note = [p90 && `90\u00a0% chance by ${clock(p90, now)}`, place].filter(Boolean).join(" · ");
  if (job.state === "paused")
    return (
      <Stat label="Next" note="It waits until it is resumed">
        On hold
      </Stat>
    );
  if (job.reason_code === "held")
    return (
      <Stat label="Next" note="It waits until it is released">
        On hold
      </Stat>
    );
  const promised = why && !p50 ? promisedAt(why) : undefined;
  if (promised !== undefined)
    return (
      <Stat
        label="Starts by"
        note={cut(["GPUs are reserved for it then", note].filter(Boolean).join(" · "))}
      >
        <Time at={promised} as="clock" />
      </Stat>
    );
  return (
    <Stat label={p50 ? "Starts about" : "Starts"} note={cut(note)}>
      {p50 ? <Time at={p50} as="clock" /> : <span className="text-muted">not forecast yet</span>}
    </Stat>
  );
}

function Ends({ job, p, now }: { job: Job; p: ReturnType<typeof useProjection>; now: number }) {
  if (job.state === "stopping")
    return (
      <Stat label="Next" note="It saves and ends within its grace">
        Stops
      </Stat>
    );
  const started = millis(job.started);
  const ran = started === undefined ? undefined : `${span(Math.max(0, now - started))} so far`;
  if (job.state === "starting" || p.endsAt === undefined)
    return (
      <Stat
        label={job.state === "starting" ? "Starts" : "Runs"}
        note={ran ? "no time limit is known" : undefined}
      >
        {job.state === "starting" ? "now" : <Span from={job.started ?? null} />}
      </Stat>
    );
  const how = p.basis === "limit" ? "at its time limit" : "judged by similar jobs";
  return (
    <Stat label="Ends about" note={cut([ran, how].filter(Boolean).join(" · "))}>
      {clock(p.endsAt, now)}
    </Stat>
  );
}

function Ended({ job }: { job: Job }) {
  const words = {
    done: "Done after",
    failed: "Failed after",
    cancelled: "Cancelled after",
  } as Record<string, string>;
  const ran = Boolean(job.started);
  return (
    <Stat
      label={words[job.state] ?? "Ended after"}
      tone={job.state === "failed" ? "bad" : undefined}
      note={<Time at={job.ended} as="both" />}
    >
      {ran ? <Span from={job.started ?? null} to={job.ended ?? null} /> : "never started"}
    </Stat>
  );
}

/** One line, with the whole of it in the tooltip. */
function cut(text: string): ReactNode {
  return text ? <Cut>{text}</Cut> : undefined;
}

function holdsNote(job: Job): ReactNode {
  const parts: string[] = [];
  if (job.on.length > 0)
    parts.push(job.on.length > 2 ? `${job.on.length} nodes` : job.on.join(", "));
  else if (/[a-z]/i.test(job.asks) && job.asks !== "no GPU") parts.push(job.asks);
  if (job.price_micros_per_hour) parts.push(`${money(job.price_micros_per_hour)}/h`);
  if (job.declared && job.gpus_milli > 0) parts.push("declared GPUs");
  return cut(parts.join(" · "));
}

function waited(job: Job): string | undefined {
  const from = millis(job.submitted);
  const to = millis(job.started);
  if (from === undefined || to === undefined || job.state === "pending") return undefined;
  return to - from < 1000 ? "started at once" : `waited ${span(to - from)}`;
}
