import { Check, ListFilter, X } from "lucide-react";
import { type ReactNode, useState } from "react";
import { cx } from "@/lib/cx";
import { Button } from "./Button";
import { Input } from "./Field";
import { Popover } from "./Overlay";

/** A small label: a tag, a filter that holds. With `onRemove` it can be taken away. */
export function Chip({
  children,
  name,
  onRemove,
  onClick,
  on,
}: {
  children: ReactNode;
  /** What kind of thing it is, lighter, before it. */
  name?: string;
  onRemove?: () => void;
  onClick?: () => void;
  on?: boolean;
}) {
  const look = cx(
    "inline-flex h-6 max-w-60 items-center gap-1 rounded-sm border text-12 max-md:h-8",
    on ? "border-accent bg-accent-soft text-fg" : "border-line-strong bg-surface text-fg",
  );
  const inside = (
    <>
      {name && <span className="text-muted">{name}</span>}
      <bdi className="min-w-0 truncate">{children}</bdi>
    </>
  );
  if (onClick && !onRemove)
    return (
      <button
        type="button"
        aria-pressed={on}
        onClick={onClick}
        className={cx(look, "px-2 hover:bg-surface-2")}
      >
        {inside}
      </button>
    );
  return (
    <span className={look}>
      {onClick ? (
        <button
          type="button"
          onClick={onClick}
          className="inline-flex h-full min-w-0 items-center gap-1 pl-2 hover:text-accent"
        >
          {inside}
        </button>
      ) : (
        <span className={cx("inline-flex min-w-0 items-center gap-1 pl-2", !onRemove && "pr-2")}>
          {inside}
        </span>
      )}
      {onRemove && (
        <button
          type="button"
          aria-label={`Remove the filter ${name ?? ""}`.trim()}
          onClick={onRemove}
          className="grid h-full w-6 place-items-center text-faint hover:text-fg max-md:w-8"
        >
          <X size={12} aria-hidden />
        </button>
      )}
    </span>
  );
}

export interface Filter {
  key: string;
  label: string;
  /** Choices; without them it is free text. */
  options?: readonly { value: string; label: string }[];
  /** Several at once, joined by commas in the address. */
  many?: boolean;
}

type Value = string | readonly string[] | undefined;

/**
 * Filters that hold as chips, and a button for the others. The address is the state: `value` comes
 * from the search parameters, `onChange` writes them.
 */
export function Filters({
  filters,
  value,
  onChange,
  children,
}: {
  filters: readonly Filter[];
  value: Readonly<Record<string, unknown>>;
  onChange: (key: string, value: string | string[] | undefined) => void;
  /** Before the chips: a search field, a saved view. */
  children?: ReactNode;
}) {
  const [editing, setEditing] = useState<string>();
  const holds = filters.filter((f) => all(value[f.key] as Value).length > 0);
  const clear = () => {
    for (const f of holds) onChange(f.key, undefined);
  };
  return (
    <div className="flex min-w-0 flex-1 flex-wrap items-center gap-2">
      {children}
      {holds.map((f) => (
        <Popover
          key={f.key}
          placed
          open={editing === f.key}
          onOpenChange={(o) => setEditing(o ? f.key : undefined)}
          width={240}
          label={f.label}
          trigger={
            <span>
              <Chip
                name={f.label}
                onClick={() => setEditing(f.key)}
                onRemove={() => onChange(f.key, undefined)}
              >
                {all(value[f.key] as Value)
                  .map((v) => f.options?.find((o) => o.value === v)?.label ?? v)
                  .join(", ")}
              </Chip>
            </span>
          }
        >
          <Editor
            filter={f}
            value={value[f.key] as Value}
            onChange={onChange}
            done={() => setEditing(undefined)}
          />
        </Popover>
      ))}
      <Adder filters={filters} value={value} onChange={onChange} />
      {holds.length > 1 && (
        <Button look="quiet" size="sm" onClick={clear}>
          Clear
        </Button>
      )}
    </div>
  );
}

function all(value: Value): readonly string[] {
  if (value === undefined || value === "") return [];
  return typeof value === "string" ? value.split(",") : value;
}

function Adder({
  filters,
  value,
  onChange,
}: {
  filters: readonly Filter[];
  value: Readonly<Record<string, unknown>>;
  onChange: (key: string, value: string | string[] | undefined) => void;
}) {
  const [open, setOpen] = useState(false);
  const [picked, setPicked] = useState<Filter>();
  const close = (o: boolean) => {
    setOpen(o);
    if (!o) setPicked(undefined);
  };
  return (
    <Popover
      open={open}
      onOpenChange={close}
      width={240}
      label="Add a filter"
      trigger={
        <Button look="quiet" size="sm" icon={ListFilter}>
          Filter
        </Button>
      }
    >
      {picked ? (
        <Editor
          filter={picked}
          value={value[picked.key] as Value}
          onChange={onChange}
          done={() => close(false)}
        />
      ) : (
        <div className="p-1">
          {filters.map((f) => (
            <Row key={f.key} onClick={() => setPicked(f)}>
              {f.label}
            </Row>
          ))}
        </div>
      )}
    </Popover>
  );
}

function Editor({
  filter,
  value,
  onChange,
  done,
}: {
  filter: Filter;
  value: Value;
  onChange: (key: string, value: string | string[] | undefined) => void;
  done: () => void;
}) {
  const now = all(value);
  const [text, setText] = useState(filter.options ? "" : now.join(","));
  const options = filter.options?.filter((o) => o.label.toLowerCase().includes(text.toLowerCase()));
  return (
    <div className="p-1">
      {(!filter.options || filter.options.length > 7) && (
        <form
          className="p-1"
          onSubmit={(e) => {
            e.preventDefault();
            if (filter.options) return;
            onChange(filter.key, text.trim() || undefined);
            done();
          }}
        >
          <Input
            autoFocus
            aria-label={filter.label}
            placeholder={
              filter.options
                ? `Search ${filter.label.toLowerCase()}`
                : `${filter.label}, then Enter`
            }
            value={text}
            onChange={(e) => setText(e.target.value)}
          />
        </form>
      )}
      {options && (
        <div className="max-h-72 overflow-y-auto">
          {options.map((o) => {
            const on = now.includes(o.value);
            return (
              <Row
                key={o.value}
                on={on}
                onClick={() => {
                  if (filter.many) {
                    const next = on ? now.filter((v) => v !== o.value) : [...now, o.value];
                    onChange(filter.key, next.length > 0 ? [...next] : undefined);
                  } else {
                    onChange(filter.key, on ? undefined : o.value);
                    done();
                  }
                }}
              >
                {o.label}
              </Row>
            );
          })}
          {options.length === 0 && (
            <div className="px-2 py-1.5 text-muted">Nothing by that name.</div>
          )}
        </div>
      )}
    </div>
  );
}

function Row({
  on,
  onClick,
  children,
}: {
  on?: boolean;
  onClick: () => void;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-pressed={on}
      onClick={onClick}
      className="flex h-7 w-full items-center gap-2 rounded-sm px-2 text-left outline-offset-[-2px] hover:bg-surface-2 max-md:h-9"
    >
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {on && <Check size={14} aria-hidden className="text-accent" />}
    </button>
  );
}
