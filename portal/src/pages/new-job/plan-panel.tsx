import { CircleAlert, TriangleAlert } from "lucide-react";
import { helpPage } from "@/api/error";
import { ErrorNote, Skeleton } from "@/design";
import { count, plural } from "@/lib/format";
import type { Problem } from "./model/problems";
import { Found } from "./plan-found";
import { Ticks } from "./sentence";
import type { PlanState } from "./use-plan";

/** What would become of the file: where, when, for how much, and at whose cost. */
export function PlanPanel({
  state,
  ready,
  hold,
  problems,
  onLine,
}: {
  state: PlanState;
  /** There is something to plan. */
  ready: boolean;
  hold: boolean;
  problems: readonly Problem[];
  /** To a line of the YAML. */
  onLine: (line: number) => void;
}) {
  const { plan, old, error } = state;
  const errors = problems.filter((p) => p.severity === "error");
  const warnings = problems.filter((p) => p.severity === "warning");
  const wrong = errors.length > 0 || error !== undefined;
  return (
    <section aria-label="Plan" aria-busy={old && ready} className="flex min-h-0 flex-col lg:h-full">
      <div className="flex h-9 shrink-0 items-center gap-2 border-line border-b px-4">
        <h2 className="font-medium text-13">Plan</h2>
        <span className="text-12 text-faint" aria-hidden>
          {ready && old ? "updating" : ""}
        </span>
      </div>
      <div
        aria-live="polite"
        className="flex min-h-48 flex-1 flex-col gap-4 overflow-y-auto px-4 py-4"
      >
        {!ready && errors.length === 0 ? (
          <p className="text-muted">
            Enter a command. As you type, the plan appears here: where and when the job would start,
            and what it would cost.
          </p>
        ) : wrong ? (
          <Wrong errors={errors} state={state} onLine={onLine} />
        ) : plan ? (
          <Found plan={plan} hold={hold} />
        ) : (
          <Waiting />
        )}
        {!wrong && warnings.length > 0 && <Warnings warnings={warnings} onLine={onLine} />}
      </div>
    </section>
  );
}

function Wrong({
  errors,
  state,
  onLine,
}: {
  errors: readonly Problem[];
  state: PlanState;
  onLine: (line: number) => void;
}) {
  // Mistakes that have a place are listed by it; a refusal as a whole is told in its own words.
  const whole = state.error && (state.error.fields.length === 0 || errors.length === 0);
  return (
    <div className="flex flex-col gap-3">
      {whole && state.error && (
        <ErrorNote
          error={state.error}
          {...(state.error.status === 0 || state.error.status >= 500
            ? { onRetry: state.retry }
            : {})}
        />
      )}
      {!whole && (
        <div role="alert" className="flex flex-col gap-2">
          <p className="flex items-center gap-2 font-medium text-14">
            <CircleAlert size={16} className="shrink-0 text-bad" aria-hidden />
            {errors.length === 1 ? "One thing to mend" : `${count(errors.length)} things to mend`}
            {state.error?.code && (
              <a
                href={helpPage(state.error.code)}
                className="font-normal text-12 text-accent hover:underline"
              >
                {state.error.code}
              </a>
            )}
          </p>
          <Places problems={errors} onLine={onLine} />
        </div>
      )}
    </div>
  );
}

function Warnings({
  warnings,
  onLine,
}: {
  warnings: readonly Problem[];
  onLine: (line: number) => void;
}) {
  return (
    <div className="flex flex-col gap-2">
      <p className="flex items-center gap-2 font-medium">
        <TriangleAlert size={14} className="shrink-0 text-warn" aria-hidden />
        {plural(warnings.length, "warning")}
      </p>
      <Places problems={warnings} onLine={onLine} />
    </div>
  );
}

function Places({
  problems,
  onLine,
}: {
  problems: readonly Problem[];
  onLine: (line: number) => void;
}) {
  return (
    <ul className="flex flex-col gap-1.5">
      {problems.slice(0, 20).map((p, i) => (
        <li key={i} className="flex gap-2">
          {p.line ? (
            <button
              type="button"
              onClick={() => onLine(p.line as number)}
              className="w-12 shrink-0 self-start text-left text-12 text-accent leading-5 hover:underline"
            >
              line {p.line}
            </button>
          ) : (
            <code className="w-12 shrink-0 truncate text-12 text-muted leading-5">{p.key}</code>
          )}
          <span className="min-w-0 wrap-anywhere">
            <Ticks text={p.message} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Waiting() {
  return (
    <div data-skeleton className="flex flex-col gap-4">
      <Skeleton width="60%" height={20} />
      <Skeleton height={92} />
      <Skeleton width="80%" />
      <Skeleton width="70%" />
    </div>
  );
}
