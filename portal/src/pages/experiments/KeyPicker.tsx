import type { LucideIcon } from "lucide-react";
import { useMemo, useState } from "react";
import { Button, Checkbox, Input, Popover } from "@/design";
import { labelOf, type Names } from "./model/row";

/** A group of keys to choose from. */
export interface KeyGroup {
  label: string;
  keys: readonly string[];
}

export function groupsOf(names: Names, attributes: readonly string[] = []): KeyGroup[] {
  return [
    { label: "Run", keys: attributes },
    { label: "Metrics", keys: names.metrics.map((n) => `metrics.${n}`) },
    { label: "Params", keys: names.params.map((n) => `params.${n}`) },
    { label: "Tags", keys: names.tags.map((n) => `tags.${n}`) },
  ].filter((g) => g.keys.length > 0);
}

/** The number of keys that the list shows. Typing finds the others. */
const SHOWN = 60;

/** Chooses some of hundreds of params, metrics and tags. */
export function KeyPicker({
  label,
  icon,
  groups,
  value,
  most,
  onChange,
  reset,
}: {
  label: string;
  icon: LucideIcon;
  groups: readonly KeyGroup[];
  value: readonly string[];
  most: number;
  onChange: (keys: string[]) => void;
  /** Returns to the default keys. */
  reset?: (() => void) | undefined;
}) {
  return (
    <Popover
      align="end"
      width={300}
      label={label}
      trigger={
        <Button look="quiet" icon={icon}>
          {label}
        </Button>
      }
    >
      <List {...{ label, groups, value, most, onChange, reset }} />
    </Popover>
  );
}

function List({
  label,
  groups,
  value,
  most,
  onChange,
  reset,
}: Omit<Parameters<typeof KeyPicker>[0], "icon">) {
  const [text, setText] = useState("");
  const found = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (key: string) =>
      words.every((w) => `${key} ${labelOf(key)}`.toLowerCase().includes(w));
    return groups.map((g) => {
      const keys = g.keys.filter(fits);
      // The chosen keys come first, so that the user sees them and can remove them.
      const on = keys.filter((k) => value.includes(k));
      const rest = keys.filter((k) => !value.includes(k));
      return { ...g, keys: [...on, ...rest].slice(0, SHOWN), more: keys.length > SHOWN };
    });
  }, [groups, text, value]);
  const full = value.length >= most;
  return (
    <div className="flex flex-col gap-1 p-2">
      <Input
        aria-label={`Find in ${label.toLowerCase()}`}
        placeholder="Find a param, metric or tag"
        value={text}
        onChange={(e) => setText(e.target.value)}
      />
      <div className="flex max-h-96 flex-col overflow-y-auto">
        {found.map(
          (g) =>
            g.keys.length > 0 && (
              <fieldset key={g.label} className="flex min-w-0 flex-col">
                <legend className="px-1 pt-1.5 font-medium text-12 text-faint">{g.label}</legend>
                {g.keys.map((key) => {
                  const on = value.includes(key);
                  return (
                    <Checkbox
                      key={key}
                      label={<bdi>{labelOf(key)}</bdi>}
                      checked={on}
                      disabled={!on && full}
                      onChange={() =>
                        onChange(on ? value.filter((v) => v !== key) : [...value, key])
                      }
                      className="min-h-7 shrink-0 rounded-sm px-1 hover:bg-surface-2"
                    />
                  );
                })}
                {g.more && <p className="px-1 text-12 text-muted">Type to find the others.</p>}
              </fieldset>
            ),
        )}
        {found.every((g) => g.keys.length === 0) && (
          <p className="px-1 py-2 text-muted">No key has this name.</p>
        )}
      </div>
      <div className="flex items-center gap-2">
        {reset && (
          <Button look="quiet" size="sm" onClick={reset}>
            Reset
          </Button>
        )}
        <span className="ml-auto text-12 text-muted" role="status">
          {full ? `${most} are the most` : ""}
        </span>
      </div>
    </div>
  );
}
