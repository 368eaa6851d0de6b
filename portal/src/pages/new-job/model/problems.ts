import type { ApiError } from "@/api/error";
import type { Plan } from "@/api/types";
import { type JobDoc, placeOf } from "./doc";

/** What is wrong, or has no effect, and where: for the editor's margin and below the form's fields. */
export interface Problem {
  /** The first word of the path: which field of the form it belongs to. */
  key: string;
  message: string;
  /** From 1. */
  line?: number;
  column?: number;
  severity: "error" | "warning";
}

/** A key that a message names in backquotes: `time`: found `zz`. */
const NAMED = /^`(\w+)`/;

export function problemsOf(
  job: JobDoc,
  error: ApiError | null | undefined,
  plan: Plan | undefined,
): Problem[] {
  if (job.mistakes.length > 0)
    return job.mistakes.map((m) => ({ ...m, key: "", severity: "error" as const }));
  const out: Problem[] = [];
  for (const f of error?.fields ?? []) {
    const path = f.path || NAMED.exec(f.message)?.[1] || "";
    const place = f.line ? { line: f.line, column: f.column ?? 1 } : placeOf(job, path);
    out.push({ key: top(path), message: said(f.message), severity: "error", ...place });
  }
  // A refusal that names no field can still belong to one.
  if (error && out.length === 0 && error.code && KEY_OF_CODE[error.code]) {
    const key = KEY_OF_CODE[error.code] as string;
    out.push({ key, message: error.message, severity: "error", ...placeOf(job, key) });
  }
  for (const w of plan?.warnings ?? []) {
    const place = w.line ? { line: w.line, column: 1 } : placeOf(job, w.key);
    out.push({ key: top(w.key), message: w.message, severity: "warning", ...place });
  }
  return out;
}

/** BRT0029: the priority is higher than one may use. BRT0006 is about the team. */
const KEY_OF_CODE: Record<string, string> = { BRT0029: "priority", BRT0006: "team" };

const top = (path: string) => path.split(/[.[]/, 1)[0] ?? "";

/** Beside its own field a message need not name it once more. */
function said(message: string): string {
  const rest = message.replace(/^`[\w.[\]]+`: /, "");
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** The first problem of each key, errors before warnings. */
export function byKey(problems: readonly Problem[]): ReadonlyMap<string, Problem> {
  const out = new Map<string, Problem>();
  for (const p of problems) {
    const known = out.get(p.key);
    if (p.key && (!known || (known.severity === "warning" && p.severity === "error")))
      out.set(p.key, p);
  }
  return out;
}
