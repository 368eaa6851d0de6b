import { Suspense, useEffect, useMemo, useRef } from "react";
import { Skeleton } from "@/design";
import { CodeEditor, type Diagnostic } from "@/viz/code-editor";
import type { Problem } from "./model/problems";

/** The file itself, with what is wrong at its lines. */
export default function YamlView({
  value,
  onChange,
  problems,
  line,
  onSubmit,
}: {
  value: string;
  onChange: (value: string) => void;
  problems: readonly Problem[];
  /** A line to go to; a new object asks again. */
  line: { line: number } | undefined;
  onSubmit: () => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const diagnostics = useMemo<Diagnostic[]>(
    () =>
      problems.flatMap((p) =>
        p.line
          ? [{ line: p.line, column: p.column ?? 1, message: p.message, severity: p.severity }]
          : [],
      ),
    [problems],
  );
  useEffect(() => {
    if (!line) return;
    // The editor may still be on its way.
    let tries = 40;
    let timer: ReturnType<typeof setTimeout>;
    const look = () => {
      const at = host.current?.querySelectorAll<HTMLElement>(".cm-line")[line.line - 1];
      if (at) {
        at.scrollIntoView({ block: "center" });
        host.current?.querySelector<HTMLElement>(".cm-content")?.focus({ preventScroll: true });
        const selection = document.getSelection();
        selection?.selectAllChildren(at);
        selection?.collapseToEnd();
      } else if (tries-- > 0) timer = setTimeout(look, 50);
    };
    look();
    return () => clearTimeout(timer);
  }, [line]);
  return (
    <div ref={host} className="p-4">
      <Suspense
        fallback={
          <div data-skeleton className="flex flex-col gap-2">
            <Skeleton width="40%" />
            <Skeleton width="60%" />
            <Skeleton width="50%" />
          </div>
        }
      >
        <CodeEditor
          title="Job file"
          value={value}
          onChange={onChange}
          diagnostics={diagnostics}
          onSubmit={onSubmit}
          placeholder="run: python train.py"
          height={480}
        />
      </Suspense>
    </div>
  );
}
