// What /v1/jobs/{job}/shell says and hears. Keys and output are binary; the rest is JSON. Pure.

export interface Ask {
  kind: "open";
  task?: number | undefined;
  command: readonly string[];
  term: string;
  rows: number;
  columns: number;
}

export interface Problem {
  title: string;
  detail: string;
  code: string;
  next: string;
}

export type Tell = { kind: "exit"; code: number } | { kind: "problem"; problem: Problem };

export function open(ask: Omit<Ask, "kind" | "term">): string {
  const { task, command, rows, columns } = ask;
  return JSON.stringify({ kind: "open", task, command, term: "xterm-256color", rows, columns });
}

export function resize(rows: number, columns: number): string {
  return JSON.stringify({ kind: "resize", rows, columns });
}

/** A message of the server; null for what we do not know, which is left alone. */
export function told(text: string): Tell | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null) return null;
  const message = value as Record<string, unknown>;
  if (message.kind === "exit" && typeof message.code === "number") {
    return { kind: "exit", code: message.code };
  }
  if (message.kind !== "problem" || typeof message.problem !== "object" || !message.problem)
    return null;
  const given = message.problem as Record<string, unknown>;
  const word = (key: string) => (typeof given[key] === "string" ? given[key] : "");
  return {
    kind: "problem",
    problem: {
      title: word("title"),
      detail: word("detail"),
      code: word("code"),
      next: word("next"),
    },
  };
}

export type Phase =
  | { kind: "connecting" }
  | { kind: "open" }
  | { kind: "ended"; code: number }
  | { kind: "refused"; problem: Problem }
  | { kind: "lost" };

export function phaseWords(phase: Phase): string {
  switch (phase.kind) {
    case "connecting":
      return "Connecting…";
    case "open":
      return "Connected";
    case "ended":
      if (phase.code === 0) return "The shell ended.";
      return phase.code > 128
        ? `The shell was ended by signal ${phase.code - 128}.`
        : `The shell ended with code ${phase.code}.`;
    case "refused": {
      const { detail, title, code, next } = phase.problem;
      return [`${(detail || title).replace(/\.$/, "")}${code ? ` (${code})` : ""}.`, next]
        .filter(Boolean)
        .join(" ");
    }
    case "lost":
      return "The connection was lost. What ran in the shell may have ended.";
  }
}
