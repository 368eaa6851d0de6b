import { type ReactNode, useId } from "react";
import { Button, Field, Input, type Option, Select, Textarea } from "@/design";
import { isText, useJobForm, useTyped } from "./context";

/** A heading and the fields below it. */
export function Section({
  title,
  about,
  children,
}: {
  title: string;
  about?: ReactNode;
  children: ReactNode;
}) {
  const id = useId();
  return (
    <section aria-labelledby={id} className="border-line border-b py-4 last:border-b-0">
      <div className="mb-3 flex flex-wrap items-baseline gap-x-3">
        <h2 id={id} className="font-semibold text-13">
          {title}
        </h2>
        {about && <p className="text-12 text-muted">{about}</p>}
      </div>
      <div className="grid grid-cols-6 gap-x-4 gap-y-3">{children}</div>
    </section>
  );
}

const SPANS = {
  1: "col-span-6",
  2: "col-span-6 sm:col-span-3",
  3: "col-span-3 sm:col-span-2",
  /** What is left beside a third. */
  rest: "col-span-6 sm:col-span-4",
} as const;

/** How many of it stand side by side. */
export function Cell({ of = 2, children }: { of?: keyof typeof SPANS; children: ReactNode }) {
  return <div className={`min-w-0 ${SPANS[of]}`}>{children}</div>;
}

/** What the file says in a way that the form has no field for. */
export function InYaml({ label }: { label: string }) {
  const form = useJobForm();
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <span className="font-medium text-12 text-muted">{label}</span>
      <div className="flex min-h-7 items-center gap-2 rounded-md bg-surface-2 px-2 text-12 text-muted">
        <span className="min-w-0 flex-1 py-1">The file says more than this field can show.</span>
        <Button size="sm" look="quiet" onClick={form.showYaml}>
          Show YAML
        </Button>
      </div>
    </div>
  );
}

export function Problems({ of }: { of: string }): ReactNode {
  const found = useJobForm().problem(of);
  if (!found) return null;
  return (
    <div className={`text-12 ${found.severity === "error" ? "text-bad" : "text-warn"}`}>
      {found.message}
    </div>
  );
}

interface Common {
  label: string;
  /** `time`, or `checkpoint.every`. */
  path: string;
  hint?: ReactNode;
}

/** The value, and what is said about it: an error where its key is the whole path. */
function useValue(path: string) {
  const form = useJobForm();
  const steps = path.split(".");
  const whole = steps.length > 1 ? form.get(steps[0] as string) : undefined;
  // `checkpoint: ckpt` is short for its path.
  const short =
    typeof whole === "string" && SHORT[steps[0] as string] === steps[1] ? whole : undefined;
  const value = short ?? form.get(...steps);
  const problem =
    steps.length === 1 || value !== undefined ? form.problem(steps[0] as string) : undefined;
  const set = (next: string) => {
    const text = next === "" ? undefined : next;
    const top = steps[0] as string;
    if (steps.length > 1 && typeof whole === "string") {
      // The short form has room for one value only.
      if (steps[1] === SHORT[top]) form.set(top, text);
      else if (text !== undefined)
        form.set(top, { [SHORT[top] ?? "path"]: whole, [steps[1] as string]: text });
    } else form.set(path, text);
  };
  return { form, value, problem, set };
}

const SHORT: Record<string, string> = { checkpoint: "path", retry: "error" };

export function TextField({
  label,
  path,
  hint,
  placeholder,
  mono,
  type = "text",
  min,
  options,
}: Common & {
  placeholder?: string;
  mono?: boolean;
  type?: "text" | "number";
  min?: number;
  /** Suggestions; anything else may be written too. */
  options?: readonly string[];
}) {
  const { form, value, problem, set } = useValue(path);
  const list = useId();
  const [typed, setTyped] = useTyped(isText(value) ? (value ?? "") : "", set);
  if (!isText(value)) return <InYaml label={label} />;
  // A number field shows nothing for what is no number, and would hide what the file says.
  const kind = type === "number" && typed !== "" && !/^\d*\.?\d*$/.test(typed) ? "text" : type;
  return (
    <Field
      label={label}
      hint={hint}
      error={problem?.severity === "error" ? problem.message : undefined}
    >
      {(p) => (
        <>
          <Input
            {...p}
            dir="auto"
            type={kind}
            min={min}
            value={typed}
            mono={mono ?? false}
            placeholder={placeholder}
            disabled={form.locked}
            list={options && options.length > 0 ? list : undefined}
            onChange={(e) => setTyped(e.target.value)}
          />
          {options && options.length > 0 && (
            <datalist id={list}>
              {options.map((o) => (
                <option key={o} value={o} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

/** A list of words in one line: `a, b`. */
export function WordsField({ label, path, hint, placeholder }: Common & { placeholder?: string }) {
  const { form, value, problem } = useValue(path);
  const plain =
    isText(value) ||
    (Array.isArray(value) && value.every((v) => typeof v === "string" && !v.includes(",")));
  const words = Array.isArray(value) ? value.join(", ") : isText(value) ? (value ?? "") : "";
  const split = (text: string) =>
    text
      .split(",")
      .map((w) => w.trim())
      .filter(Boolean);
  const [typed, setTyped] = useTyped(
    words,
    (text) => {
      const all = split(text);
      form.set(path, all.length === 0 ? undefined : all);
    },
    (text) => split(text).join(","),
  );
  if (!plain) return <InYaml label={label} />;
  return (
    <Field label={label} hint={hint} error={problem?.message}>
      {(p) => (
        <Input
          {...p}
          dir="auto"
          value={typed}
          placeholder={placeholder}
          disabled={form.locked}
          onChange={(e) => setTyped(e.target.value)}
        />
      )}
    </Field>
  );
}

/** One of a few. What the file says stays a choice even where it is none of ours. */
export function ChoiceField({
  label,
  path,
  hint,
  options,
  fallback,
}: Common & {
  options: readonly Option[];
  /** What holds where the file says nothing. */
  fallback: string;
}) {
  const { form, value, problem, set } = useValue(path);
  if (!isText(value)) return <InYaml label={label} />;
  const known = value === undefined || options.some((o) => o.value === value);
  return (
    <Field
      label={label}
      hint={hint}
      error={problem?.severity === "error" ? problem.message : undefined}
    >
      {(p) => (
        <Select
          {...p}
          className="w-full"
          value={value ?? ""}
          disabled={form.locked}
          onChange={set}
          options={[
            { value: "", label: fallback },
            ...(known ? [] : [{ value: value as string, label: value as string }]),
            ...options,
          ]}
        />
      )}
    </Field>
  );
}

/** The command. Several lines are a script; a list of words is shown as one line of them. */
export function CommandField({ optional }: { optional: boolean }) {
  const { form, value, problem } = useValue("run");
  const words =
    Array.isArray(value) && value.every((v) => typeof v === "string")
      ? (value as string[])
      : undefined;
  const text = words ? words.map(quoteWord).join(" ") : isText(value) ? (value ?? "") : "";
  const [typed, setTyped] = useTyped(
    text,
    (next) => {
      const body = trimEnd(next);
      if (body.trim() === "") form.set("run", undefined);
      else form.set("run", body.includes("\n") ? `${body}\n` : body);
    },
    trimEnd,
  );
  if (!words && !isText(value)) return <InYaml label="Command" />;
  const rows = Math.min(14, Math.max(4, typed.split("\n").length + 1));
  return (
    <Field
      label="Command"
      hint={
        words
          ? "A program with its arguments, run without a shell. Once you change it here, it becomes a script."
          : optional
            ? "A notebook needs none."
            : "A bash script. It runs once on each node."
      }
      error={problem?.severity === "error" ? problem.message : undefined}
    >
      {(p) => (
        <Textarea
          {...p}
          mono
          rows={rows}
          value={typed}
          disabled={form.locked}
          placeholder="python train.py --epochs 3"
          onChange={(e) => setTyped(e.target.value)}
        />
      )}
    </Field>
  );
}

const trimEnd = (text: string) => text.replace(/\n+$/, "");
const quoteWord = (w: string) =>
  /^[\w@%+=:,./$-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`;
