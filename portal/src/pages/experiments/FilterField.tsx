import { CircleHelp, Search, X } from "lucide-react";
import { type ReactNode, useEffect, useId, useState } from "react";
import { asApiError } from "@/api/error";
import { Button, Input, Popover } from "@/design";
import { errorAt, errorText, filterOf, quoted } from "./model/filter";
import type { Names } from "./model/row";

/** A filter in MLflow's grammar. Enter applies it, because an unfinished filter is an error. */
export function FilterField({
  value,
  onChange,
  error,
  names,
}: {
  value: string | undefined;
  onChange: (value: string | undefined) => void;
  error: unknown;
  names: Names;
}) {
  const [text, setText] = useState(value ?? "");
  const about = useId();
  useEffect(() => setText(value ?? ""), [value]);
  const refused = error ? asApiError(error) : undefined;
  const wrong = refused?.kind === "INVALID_PARAMETER_VALUE" ? refused : undefined;
  const apply = (next: string) => onChange(next.trim() || undefined);
  return (
    <div className="flex min-w-0 flex-1 flex-col gap-1 max-md:basis-full">
      <form
        className="flex min-w-0 items-center gap-1"
        onSubmit={(e) => {
          e.preventDefault();
          apply(text);
        }}
      >
        <span className="relative min-w-0 flex-1 md:max-w-160">
          <Search
            size={14}
            aria-hidden
            className="-translate-y-1/2 pointer-events-none absolute top-1/2 left-2 text-faint"
          />
          <Input
            mono
            role="searchbox"
            aria-label="Filter runs"
            aria-invalid={wrong ? true : undefined}
            aria-describedby={wrong ? about : undefined}
            data-slash
            placeholder="A word of the name, or metrics.loss < 0.5 AND params.lr = '0.1'"
            className="px-7!"
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
          {text !== "" && (
            <button
              type="button"
              aria-label="Clear the filter"
              onClick={() => {
                setText("");
                apply("");
              }}
              className="-translate-y-1/2 absolute top-1/2 right-1 rounded-sm p-1 text-faint hover:text-fg"
            >
              <X size={12} aria-hidden />
            </button>
          )}
        </span>
        {text.trim() !== (value ?? "") && (
          <Button type="submit" size="md">
            Apply
          </Button>
        )}
        <Popover
          align="end"
          width={360}
          label="How to filter"
          trigger={
            <Button look="quiet" icon={CircleHelp} iconOnly>
              How to filter
            </Button>
          }
        >
          <Help
            names={names}
            onPick={(clause) => setText(text.trim() ? `${text.trim()} AND ${clause}` : clause)}
          />
        </Popover>
      </form>
      {wrong && (
        <div id={about} role="alert" className="flex flex-col gap-0.5 text-12">
          <Marked filter={filterOf(value)} message={wrong.message} />
          <span className="text-bad wrap-anywhere">{errorText(wrong.message)}</span>
        </div>
      )}
    </div>
  );
}

/** The filter with its error underlined. */
function Marked({ filter, message }: { filter: string; message: string }) {
  const where = errorAt(filter, message);
  if (!where) return null;
  return (
    <code data-testid="filter-error" className="whitespace-pre-wrap wrap-anywhere">
      {where.before}
      <mark className="bg-failed-soft text-bad underline decoration-2">
        {where.at === " " ? "\u00a0" : where.at}
      </mark>
      {where.after}
    </code>
  );
}

function Help({ names, onPick }: { names: Names; onPick: (clause: string) => void }) {
  const metric = names.metrics[0] ?? "loss";
  const param = names.params[0] ?? "lr";
  const examples = [
    `${quoted(`metrics.${metric}`)} < 0.5`,
    `${quoted(`params.${param}`)} = '0.1'`,
    "metrics.berth.cost < 50",
    "status = 'RUNNING'",
    "run_name ILIKE '%llama%'",
    "tags.berth.job IS NOT NULL",
    "datasets.name = 'c4@v3'",
  ];
  return (
    <div className="flex flex-col gap-2 p-3">
      <p className="text-muted">
        Join comparisons with AND. Compare metrics with numbers, and params and tags with texts in
        quotes. Berth compares the newest value of a metric. A single word searches the names.
      </p>
      <ul className="flex flex-col">
        {examples.map((example) => (
          <li key={example}>
            <button
              type="button"
              onClick={() => onPick(example)}
              className="w-full rounded-sm px-1 py-1 text-left hover:bg-surface-2"
            >
              <code className="text-12">{example}</code>
            </button>
          </li>
        ))}
      </ul>
      <p className="text-12 text-muted">
        Put keys with spaces or slashes in `backticks`. Press Enter to apply the filter.
      </p>
    </div>
  );
}

/** A sentence in place of an empty chart. */
export function Hint({ children }: { children: ReactNode }) {
  return <p className="px-4 py-10 text-center text-muted">{children}</p>;
}
