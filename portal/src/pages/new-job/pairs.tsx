import { Plus, X } from "lucide-react";
import { useId } from "react";
import { Button, Input } from "@/design";
import { useJobForm, useTyped } from "./context";
import { InYaml, Problems } from "./fields";
import type { Value } from "./model/doc";

export type Pair = [name: string, value: string];

/** Names with values, a line each. A line counts once its name is there. */
export function PairsField({
  label,
  path,
  one,
  names,
  values,
  options = [],
  read = readPairs,
  write = writePairs,
  hint,
}: {
  label: string;
  path: string;
  /** What one line is: "variable". */
  one: string;
  /** Placeholders. */
  names: string;
  values: string;
  /** Suggestions for values. */
  options?: readonly string[];
  read?: (value: Value | undefined) => Pair[] | undefined;
  write?: (pairs: Pair[]) => Value | undefined;
  hint?: string;
}) {
  const form = useJobForm();
  const list = useId();
  const pairs = read(form.get(path));
  const [rows, setRows] = useTyped<Pair[]>(
    pairs ?? [],
    (next) => form.set(path, write(next.filter(([name]) => name.trim() !== ""))),
    // Two of one name are one in the file, as long as somebody types.
    (all) => JSON.stringify(Object.fromEntries(all.filter(([name]) => name.trim() !== ""))),
  );
  if (!pairs) return <InYaml label={label} />;
  const change = (i: number, part: 0 | 1, text: string) =>
    setRows(
      rows.map((row, at) => (at === i ? (part === 0 ? [text, row[1]] : [row[0], text]) : row)),
    );
  return (
    <fieldset className="flex min-w-0 flex-col gap-1.5">
      <legend className="mb-1 font-medium text-12 text-muted">{label}</legend>
      {rows.map(([name, value], i) => {
        const twice = name !== "" && rows.findIndex(([other]) => other === name) < i;
        return (
          <div key={i} className="flex items-center gap-1.5">
            <Input
              mono
              className="flex-2"
              aria-label={`${one} ${i + 1}`}
              aria-invalid={twice || undefined}
              title={twice ? `${name} is there twice; the last one counts.` : undefined}
              placeholder={names}
              value={name}
              disabled={form.locked}
              onChange={(e) => change(i, 0, e.target.value)}
            />
            <span aria-hidden className="text-faint">
              =
            </span>
            <Input
              mono
              className="flex-3"
              aria-label={`value of ${one} ${i + 1}`}
              placeholder={values}
              value={value}
              disabled={form.locked}
              list={options.length > 0 ? list : undefined}
              onChange={(e) => change(i, 1, e.target.value)}
            />
            <Button
              look="quiet"
              size="sm"
              icon={X}
              iconOnly
              disabled={form.locked}
              onClick={() => setRows(rows.filter((_, at) => at !== i))}
            >
              {`Remove ${one} ${i + 1}`}
            </Button>
          </div>
        );
      })}
      {options.length > 0 && (
        <datalist id={list}>
          {options.map((o) => (
            <option key={o} value={o} />
          ))}
        </datalist>
      )}
      <div className="flex flex-wrap items-center gap-x-3">
        <Button
          size="sm"
          icon={Plus}
          disabled={form.locked}
          onClick={() => setRows([...rows, ["", ""]])}
        >
          {`Add ${one}`}
        </Button>
        {hint && <span className="text-12 text-muted">{hint}</span>}
      </div>
      <Problems of={path} />
    </fieldset>
  );
}

export function readPairs(value: Value | undefined): Pair[] | undefined {
  if (value === undefined) return [];
  if (typeof value === "string" || Array.isArray(value)) return undefined;
  const out: Pair[] = [];
  for (const [name, item] of Object.entries(value)) {
    if (typeof item !== "string") return undefined;
    out.push([name, item]);
  }
  return out;
}

export function writePairs(pairs: Pair[]): Value | undefined {
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

/** `[HF_TOKEN]`, or the variable with its secret. */
export function readSecrets(value: Value | undefined): Pair[] | undefined {
  if (typeof value === "string") return [[value, value]];
  if (Array.isArray(value))
    return value.every((v) => typeof v === "string")
      ? value.map((v) => [v as string, v as string])
      : undefined;
  return readPairs(value);
}

export function writeSecrets(pairs: Pair[]): Value | undefined {
  if (pairs.length === 0) return undefined;
  const plain = pairs.every(([name, secret]) => secret === "" || secret === name);
  if (plain) return pairs.map(([name]) => name);
  return Object.fromEntries(pairs.map(([name, secret]) => [name, secret || name]));
}

/** Parameters with their values, separated by commas. */
export function readSweep(value: Value | undefined): Pair[] | undefined {
  if (value === undefined) return [];
  if (typeof value === "string" || Array.isArray(value)) return undefined;
  const out: Pair[] = [];
  for (const [name, item] of Object.entries(value)) {
    if (name === "at_most") continue;
    if (name === "zip" || name === "product") return undefined;
    const values = Array.isArray(item) ? item : [item];
    if (!values.every((v) => typeof v === "string" && !v.includes(","))) return undefined;
    out.push([name, values.join(", ")]);
  }
  return out;
}

export function writeSweep(pairs: Pair[]): { [key: string]: Value } | undefined {
  if (pairs.length === 0) return undefined;
  return Object.fromEntries(
    pairs.map(([name, text]) => [
      name,
      text
        .split(",")
        .map((v) => v.trim())
        .filter(Boolean),
    ]),
  );
}
