import { getRouteApi } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useMemo, useState } from "react";
import { useMay, useMe } from "@/api/session";
import { Button, ErrorNote, Note, Page, Skeleton, Switch, Tabs } from "@/design";
import { CommandView } from "./command-view";
import { type JobForm, JobFormContext } from "./context";
import { Form } from "./Form";
import { commandLine, oneLine } from "./model/command-line";
import { readDoc, valueAt, withValue } from "./model/doc";
import { EMPTY, loadDraft, saveDraft } from "./model/draft";
import { byKey, problemsOf } from "./model/problems";
import { InBrief } from "./plan-found";
import { PlanPanel } from "./plan-panel";
import type { Mode } from "./search";
import { StartFrom, useStart } from "./start";
import { usePlan, useSettled } from "./use-plan";
import { useSubmit } from "./use-submit";

const route = getRouteApi("/new");
const Yaml = lazy(() => import("./yaml-view"));

const TABS = [
  { value: "form", label: "Form" },
  { value: "yaml", label: "YAML" },
  { value: "command", label: "Command line" },
] as const;

export default function NewJobPage() {
  const me = useMe();
  if (!me) return <Blank />;
  return <NewJob key={me.user} user={me.user} />;
}

function Blank() {
  return (
    <Page title="New job">
      <div data-skeleton className="flex flex-col gap-3">
        <Skeleton width={240} height={28} />
        <Skeleton height={120} />
        <Skeleton height={120} />
      </div>
    </Page>
  );
}

function NewJob({ user }: { user: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [text, setText] = useState(() => loadDraft(user) ?? EMPTY);
  const [line, setLine] = useState<{ line: number }>();
  const settled = useSettled(text, 200);
  useEffect(() => saveDraft(user, settled), [user, settled]);
  const start = useStart({ text, setText });

  const mode: Mode = search.mode ?? "form";
  const show = useCallback(
    (to: Mode) =>
      void navigate({
        search: (old) => ({ ...old, mode: to === "form" ? undefined : to }),
        replace: true,
      }),
    [navigate],
  );

  const job = useMemo(() => readDoc(text), [text]);
  const readable = job.mistakes.length === 0;
  const hold = readable && valueAt(job, "hold") === "true";
  // A notebook needs no command; nothing else can be planned without one.
  const ready =
    readable && (valueAt(job, "run") !== undefined || valueAt(job, "kind") === "notebook");
  const plan = usePlan(ready ? text : undefined, false);
  const problems = useMemo(
    () => problemsOf(job, plan.error, plan.plan),
    [job, plan.error, plan.plan],
  );
  const known = useMemo(() => byKey(problems), [problems]);

  const form: JobForm = {
    job,
    get: (...path) => valueAt(job, ...path),
    set: (path, value) => setText((old) => withValue(old, path.split("."), value)),
    problem: (key) => known.get(key),
    showYaml: () => show("yaml"),
    locked: !readable,
  };

  const team = valueAt(job, "team");
  const may = useMay("JobsSubmit", { team: typeof team === "string" ? team : undefined, user });
  const submit = useSubmit(() => {
    saveDraft(user, undefined);
    setText(EMPTY);
  });
  const refused = plan.error !== undefined && REFUSED.has(plan.error.status);
  const wrong = problems.some((p) => p.severity === "error") || refused;
  // What is known about an older text says nothing about this one.
  const errors = wrong && !plan.old;
  const denied = !may.ok
    ? may.reason
    : !readable
      ? `Mend line ${job.mistakes[0]?.line} of the YAML first.`
      : !ready
        ? "There is nothing to run yet."
        : errors
          ? "Mend what the plan names first."
          : undefined;
  const go = () => {
    if (!denied && !submit.isPending) submit.mutate({ text, hold });
  };
  const toLine = (n: number) => {
    setLine({ line: n });
    show("yaml");
  };

  return (
    <Page
      title="New job"
      fill
      command={readable ? oneLine(commandLine(job)) : "berth run -f job.yaml"}
      actions={<StartFrom start={start} />}
    >
      <div className="flex min-h-0 flex-1 flex-col border-line border-t lg:grid lg:grid-cols-[minmax(0,1fr)_368px] lg:grid-rows-[minmax(0,1fr)_auto]">
        {/* Where it is narrow the plan follows the form, and only what is below stays in sight. */}
        <div className="min-h-0 flex-1 overflow-y-auto lg:contents">
          <div className="flex min-w-0 flex-col lg:row-span-2 lg:min-h-0">
            <Tabs tabs={TABS} value={mode} onChange={show} label="The job as">
              <div className="h-full lg:overflow-y-auto">
                {start.error !== undefined && (
                  <div className="p-4 pb-0">
                    <ErrorNote error={start.error} />
                  </div>
                )}
                {mode === "form" && (
                  <JobFormContext value={form}>
                    {!readable && (
                      <div className="p-4 pb-0">
                        <Note tone="warn">
                          Line {job.mistakes[0]?.line} of the YAML cannot be read, so the form
                          waits.{" "}
                          <Button size="sm" onClick={() => toLine(job.mistakes[0]?.line ?? 1)}>
                            Show it
                          </Button>
                        </Note>
                      </div>
                    )}
                    <div className="max-w-200">
                      {start.loading ? <FormSkeleton /> : <Form key={start.count} />}
                    </div>
                  </JobFormContext>
                )}
                {mode === "yaml" && (
                  <Suspense fallback={<FormSkeleton />}>
                    <Yaml
                      value={text}
                      onChange={setText}
                      problems={problems}
                      line={line}
                      onSubmit={go}
                    />
                  </Suspense>
                )}
                {mode === "command" && <CommandView job={job} onYaml={() => show("yaml")} />}
              </div>
            </Tabs>
          </div>
          <aside className="border-line bg-surface max-lg:border-t lg:col-start-2 lg:row-start-1 lg:min-h-0 lg:border-l">
            <PlanPanel state={plan} ready={ready} hold={hold} problems={problems} onLine={toLine} />
          </aside>
        </div>
        <div className="flex flex-col gap-2 border-line border-t bg-surface px-4 py-3 lg:col-start-2 lg:row-start-2 lg:border-l">
          {submit.error && <ErrorNote error={submit.error} />}
          <div className="flex items-center gap-3">
            <Switch
              label="Submit on hold"
              checked={hold}
              disabled={!readable}
              onChange={(on) => form.set("hold", on ? "true" : undefined)}
            />
            <span className="min-w-0 flex-1 truncate text-12 text-muted">
              <span className="lg:hidden">
                {!errors && plan.plan && ready && <InBrief plan={plan.plan} hold={hold} />}
              </span>
              <span className="max-lg:hidden">{hold && "until it is released"}</span>
            </span>
            <Button
              look="primary"
              busy={submit.isPending}
              denied={denied}
              title={denied}
              onClick={go}
            >
              Submit job
            </Button>
          </div>
        </div>
      </div>
    </Page>
  );
}

/** Answers about the file; others say that the server has trouble of its own. */
const REFUSED = new Set([400, 403, 404, 409, 422]);

function FormSkeleton() {
  return (
    <div data-skeleton className="flex flex-col gap-4 p-4">
      <Skeleton width={180} height={28} />
      <Skeleton height={28} />
      <Skeleton height={96} />
      <Skeleton height={28} />
    </div>
  );
}
