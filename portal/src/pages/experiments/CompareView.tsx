import { Fragment, useMemo } from "react";
import { Button, None, StateBadge, Switch, TextLink, Tooltip } from "@/design";
import { plural } from "@/lib/format";
import { Hint } from "./FilterField";
import { type DiffLine, diff, KIND_WORDS } from "./model/diff";
import { type Kind, statusOf } from "./model/row";
import { MOST_COMPARED, type ViewProps } from "./view";

const KINDS: readonly Kind[] = ["params", "metrics", "tags", "attributes"];

/** The differences between two or more runs. */
export default function CompareView({ chosen, search, set }: ViewProps) {
  const runs = chosen.slice(0, MOST_COMPARED);
  const lines = useMemo(() => diff(runs), [runs.map((r) => r.id).join(), chosen]);
  const shown = search.same ? lines : lines.filter((l) => l.differs);
  if (runs.length < 2)
    return (
      <Hint>
        Select two or more runs in the table to compare them.{" "}
        <Button size="sm" onClick={() => set({ view: undefined })}>
          Open the table
        </Button>
      </Hint>
    );
  return (
    <div className="flex flex-col gap-3 p-4">
      <div className="flex flex-wrap items-center gap-3">
        <Switch
          label="Show equal values"
          checked={search.same ?? false}
          onChange={(on) => set({ same: on || undefined })}
        />
        <span role="status" className="text-12 text-muted">
          {plural(runs.length, "run")},{" "}
          {plural(lines.filter((l) => l.differs).length, "difference")}
          {chosen.length > MOST_COMPARED && `. The first ${MOST_COMPARED} are compared.`}
        </span>
      </div>
      {/* It scrolls to the side, and so takes the focus. */}
      <div
        tabIndex={0}
        role="group"
        aria-label="Comparison of the runs"
        className="overflow-x-auto rounded-md border border-line bg-surface"
      >
        <table className="w-full border-collapse text-left">
          <thead>
            <tr className="border-line border-b">
              <th scope="col" className="sticky left-0 bg-surface px-3 py-2 font-normal text-muted">
                Run
              </th>
              {runs.map((run) => (
                <th key={run.id} scope="col" className="min-w-36 max-w-80 px-3 py-2 align-top">
                  <TextLink to="/runs/$run" params={{ run: run.id }}>
                    <bdi className="wrap-anywhere">{run.name}</bdi>
                  </TextLink>
                  <div className="flex items-center gap-2 font-normal text-12">
                    <StateBadge
                      state={statusOf(run.status).state}
                      word={statusOf(run.status).word}
                    />
                    <Button
                      look="quiet"
                      size="sm"
                      onClick={() => set({ runs: search.runs?.filter((id) => id !== run.id) })}
                    >
                      Remove
                    </Button>
                  </div>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {KINDS.map((kind) => {
              const of = shown.filter((l) => l.kind === kind);
              return (
                of.length > 0 && (
                  <Fragment key={kind}>
                    <tr className="border-line border-b bg-surface-2">
                      <th
                        scope="colgroup"
                        colSpan={runs.length + 1}
                        className="px-3 py-1 font-medium text-12 text-muted"
                      >
                        {KIND_WORDS[kind]}
                      </th>
                    </tr>
                    {of.map((line) => (
                      <Line key={line.key} line={line} runs={runs.map((r) => r.id)} />
                    ))}
                  </Fragment>
                )
              );
            })}
            {shown.length === 0 && (
              <tr>
                <td colSpan={runs.length + 1} className="px-3 py-6 text-center text-muted">
                  These runs have the same params, metrics and tags.
                </td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Line({ line, runs }: { line: DiffLine; runs: readonly string[] }) {
  return (
    <tr className="border-line border-b last:border-b-0">
      <th
        scope="row"
        className="sticky left-0 min-w-24 max-w-60 bg-surface px-3 py-1 align-top font-normal text-muted wrap-anywhere"
      >
        <bdi>{line.name}</bdi>
      </th>
      {line.values.map((value, i) => (
        <td
          key={runs[i]}
          className={`max-w-80 px-3 py-1 align-top wrap-anywhere ${line.differs ? "" : "text-muted"}`}
        >
          {value === undefined ? (
            <None />
          ) : value.length > LONG ? (
            <Tooltip text={value.slice(0, 2000)}>
              <bdi>{value.slice(0, LONG)}…</bdi>
            </Tooltip>
          ) : (
            <bdi>{value}</bdi>
          )}
        </td>
      ))}
    </tr>
  );
}

const LONG = 200;
