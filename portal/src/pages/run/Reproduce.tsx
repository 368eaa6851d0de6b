import { queryOptions, useQuery } from "@tanstack/react-query";
import { CircleAlert, CircleCheck, Play, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { api, data } from "@/api/client";
import { asApiError } from "@/api/error";
import { useMay } from "@/api/session";
import type { Recipe, RecipeDifference } from "@/api/types";
import {
  Button,
  CommandLine,
  Confirm,
  CopyButton,
  Drawer,
  ErrorNote,
  ErrorState,
  Facts,
  Mono,
  Note,
  Skeleton,
  TextLink,
} from "@/design";
import { reproduceCommand } from "../lineage/model";
import { InBrief } from "../new-job/plan-found";
import { Ticks } from "../new-job/sentence";
import { usePlan } from "../new-job/use-plan";
import { useSubmit } from "../new-job/use-submit";
import type { RunParts } from "./model";
import {
  blocking,
  looseFile,
  mayDiffer,
  needsAnyway,
  saveCommand,
  submitCommand,
  type Verdict,
  verdictOf,
} from "./recipe";

function recipeQuery(run: string) {
  return queryOptions({
    queryKey: ["runs", "recipe", run],
    queryFn: ({ signal }) =>
      data(api.GET("/v1/runs/{run}/recipe", { params: { path: { run } }, signal })),
  });
}

/** How to repeat the run, what has changed since, and a button that submits the job again. */
export default function Reproduce({ parts, onClose }: { parts: RunParts; onClose: () => void }) {
  const { row, team } = parts;
  const query = useQuery(recipeQuery(`run:${row.id}`));
  const recipe = query.data;
  return (
    <Drawer
      open
      title="Reproduce"
      subtitle={<bdi>{row.name}</bdi>}
      width={640}
      onClose={onClose}
      command={reproduceCommand(row.id, team)}
      actions={recipe && <Submit recipe={recipe} onDone={onClose} />}
    >
      {query.error && !recipe ? (
        <ErrorState
          error={query.error}
          {...(asApiError(query.error).status !== 404 && { onRetry: () => void query.refetch() })}
        />
      ) : recipe ? (
        <Found recipe={recipe} />
      ) : (
        <div data-skeleton aria-busy="true" className="flex flex-col gap-4">
          <Skeleton width="60%" height={20} />
          <Skeleton height={92} />
          <Skeleton height={240} />
        </div>
      )}
    </Drawer>
  );
}

function Submit({ recipe, onDone }: { recipe: Recipe; onDone: () => void }) {
  const [asked, ask] = useState(false);
  const may = useMay("JobsSubmit", { team: recipe.team });
  const submit = useSubmit(onDone);
  const anyway = needsAnyway(recipe);
  const blocks = blocking(recipe);
  // The server refuses to plan a file that it refuses to run.
  const { plan } = usePlan(blocks.length === 0 ? recipe.file : undefined, false);
  return (
    <>
      <Button
        look={anyway ? "secondary" : "primary"}
        icon={Play}
        denied={may.reason}
        busy={submit.isPending}
        onClick={() => (anyway ? ask(true) : submit.mutate({ text: recipe.file, hold: false }))}
      >
        {anyway ? "Submit anyway" : "Submit again"}
      </Button>
      {plan && (
        <span className="text-muted">
          <InBrief plan={plan} hold={false} />
        </span>
      )}
      {submit.error && !asked && <ErrorNote error={submit.error} />}
      <Confirm
        open={asked}
        onClose={() => ask(false)}
        title="Submit the job although it may not repeat the run?"
        loses={blocks.map((d) => ({ what: <Ticks text={d.what} />, amount: short(d.now) }))}
        verb="Submit the job"
        harmless
        onConfirm={() => submit.mutateAsync({ text: looseFile(recipe), hold: false })}
      >
        {recipe.source === "artifact"
          ? "Members of the team can change the job file of this run. Submit it only after reading it."
          : "The new job uses the current data and code."}
      </Confirm>
    </>
  );
}

/** A hash or another value in a narrow place. */
function short(text: string): string {
  return text.length > 28 ? `${text.slice(0, 27)}…` : text;
}

function Found({ recipe }: { recipe: Recipe }) {
  return (
    <div className="flex flex-col gap-5">
      <Says verdict={verdictOf(recipe)} />
      {recipe.source === "artifact" && (
        <Note tone="warn">
          The server does not have the job of this run. The job file is the artifact{" "}
          <code>berth/job.yaml</code>, which members of team <bdi>{recipe.team}</bdi> can change.
          Read it before you submit it.
        </Note>
      )}
      <Differences title="Prevents an exact repetition" rows={blocking(recipe)} />
      <Differences title="May differ" rows={mayDiffer(recipe)} />
      <Inputs recipe={recipe} />
      <section aria-label="Job file">
        <div className="mb-1 flex items-center gap-2">
          <h3 className="flex-1 font-medium">Job file</h3>
          <CopyButton text={recipe.file} label="Copy the job file" />
        </div>
        {/* A long line scrolls to the side, so the file takes the focus. */}
        <pre
          tabIndex={0}
          data-scrolls
          aria-label="Job file that repeats the run"
          role="group"
          className="overflow-x-auto rounded-md border border-line bg-surface-2 p-3 font-mono text-12"
        >
          {recipe.file}
        </pre>
      </section>
      <section aria-label="On the command line">
        <h3 className="mb-1 font-medium">On the command line</h3>
        <div className="divide-y divide-line rounded-md border border-line">
          <CommandLine command={saveCommand(recipe)} />
          <CommandLine command={submitCommand(recipe)} />
        </div>
      </section>
    </div>
  );
}

const ICONS = {
  good: [CircleCheck, "text-good"],
  warn: [TriangleAlert, "text-warn"],
  bad: [CircleAlert, "text-bad"],
} as const;

function Says({ verdict: { tone, text } }: { verdict: Verdict }) {
  const [Icon, colour] = ICONS[tone];
  return (
    <p className="flex items-center gap-2 font-semibold text-16" data-testid="verdict">
      <Icon size={16} aria-hidden className={`shrink-0 ${colour}`} />
      {text}
    </p>
  );
}

function Differences({ title, rows }: { title: string; rows: readonly RecipeDifference[] }) {
  if (rows.length === 0) return null;
  return (
    <section aria-label={title}>
      <h3 className="mb-1 font-medium">{title}</h3>
      <ul className="divide-y divide-line rounded-md border border-line">
        {rows.map((d, i) => (
          <li key={i} className="flex flex-col gap-1 px-3 py-2">
            <bdi className="font-medium wrap-anywhere">{d.what}</bdi>
            <dl className="grid grid-cols-[40px_minmax(0,1fr)] gap-x-2">
              <dt className="text-muted">Then</dt>
              <dd className="wrap-anywhere">
                <Ticks text={d.then} />
              </dd>
              <dt className="text-muted">Now</dt>
              <dd className="wrap-anywhere">
                <Ticks text={d.now} />
              </dd>
            </dl>
            <p className="text-muted wrap-anywhere">
              <Ticks text={begun(d.next)} />
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The server begins its remarks with a small letter. */
function begun(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function Inputs({ recipe }: { recipe: Recipe }) {
  const { code, image } = recipe;
  return (
    <section aria-label="Inputs of the run">
      <h3 className="mb-1 font-medium">Inputs of the run</h3>
      <Facts
        items={[
          recipe.job != null && [
            "Job",
            <TextLink key="j" to="/jobs/$job" params={{ job: recipe.job }}>
              {recipe.job}
            </TextLink>,
          ],
          code != null && [
            "Code",
            <span key="c" className="flex min-w-0 flex-col">
              <Mono>{code.commit ?? code.snapshot}</Mono>
              <span className="text-12 text-muted">
                {[
                  code.dirty && "with uncommitted changes",
                  code.kept ? "Berth has the snapshot" : "the snapshot was deleted",
                ]
                  .filter(Boolean)
                  .join("; ")}
              </span>
            </span>,
          ],
          image != null && ["Image", <Mono key="i">{image}</Mono>],
          recipe.data.length > 0 && [
            "Data",
            <ul key="d" className="flex flex-col gap-1">
              {recipe.data.map((d) => (
                <li key={d.path} className="flex min-w-0 flex-col">
                  <span className="flex min-w-0 flex-wrap gap-x-1.5">
                    <TextLink
                      to="/models"
                      search={{ team: recipe.team, tab: "data", open: d.version }}
                    >
                      {d.version}
                    </TextLink>
                    <span className="text-muted wrap-anywhere">at {d.path}</span>
                  </span>
                  <Mono>{d.hash}</Mono>
                </li>
              ))}
            </ul>,
          ],
        ]}
      />
    </section>
  );
}
