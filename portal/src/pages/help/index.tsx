import { getRouteApi } from "@tanstack/react-router";
import { EmptyState, Page } from "@/design";
import reasonsText from "../../../../docs/reasons.md?raw";
import { Markdown, parseReasons } from "./markdown";

const route = getRouteApi("/help/$code");

const errors = import.meta.glob<string>("../../../../docs/errors/BRT*.md", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The pages of error codes and of reasons for waiting, as the documentation has them. */
export default function HelpPage() {
  const { code } = route.useParams();
  const error = errors[`../../../../docs/errors/${code.toUpperCase()}.md`];
  const reason = error ? undefined : parseReasons(reasonsText).find((r) => r.code === code);
  return (
    <Page title={error ? code.toUpperCase() : code} path={[{ label: "Help" }]}>
      <article className="flex max-w-[72ch] flex-col gap-3 text-14">
        {error && <Markdown text={error} />}
        {reason && (
          <Markdown
            text={`${reason.sentence}\n\n## Cause\n\n${reason.cause}\n\n## What to do\n\n${reason.todo}`}
          />
        )}
        {!error && !reason && (
          <EmptyState title={`There is no page about ${code}`}>
            It may belong to a newer server than this portal.
          </EmptyState>
        )}
      </article>
    </Page>
  );
}
