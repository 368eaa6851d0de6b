import { ChevronDown, Search, X } from "lucide-react";
import {
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { cx } from "@/lib/cx";

const BOX =
  "w-full rounded-md border border-line-strong bg-surface text-13 text-fg placeholder:text-faint transition-colors duration-(--motion) hover:border-faint focus-visible:border-focus focus-visible:outline-1 focus-visible:outline-offset-0 disabled:opacity-50 aria-invalid:border-bad";

interface FieldProps {
  label: ReactNode;
  /** One line below the field. */
  hint?: ReactNode;
  /** In the words of the API; the field is marked and this is read out. */
  error?: ReactNode;
  optional?: boolean;
  children: (props: {
    id: string;
    "aria-describedby"?: string;
    "aria-invalid"?: boolean;
  }) => ReactNode;
}

/** A label, what is filled in, and what to say about it. */
export function Field({ label, hint, error, optional, children }: FieldProps) {
  const id = useId();
  const about = error || hint ? `${id}-about` : undefined;
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label
        htmlFor={id}
        className="flex items-baseline justify-between gap-2 font-medium text-12 text-muted"
      >
        <span>{label}</span>
        {optional && <span className="font-normal text-faint">optional</span>}
      </label>
      {children({
        id,
        ...(about && { "aria-describedby": about }),
        ...(error ? { "aria-invalid": true } : {}),
      })}
      {(error || hint) && (
        <div id={about} className={cx("text-12", error ? "text-bad" : "text-muted")}>
          {error || hint}
        </div>
      )}
    </div>
  );
}

export function Input({
  className,
  mono,
  ...rest
}: InputHTMLAttributes<HTMLInputElement> & { mono?: boolean; ref?: Ref<HTMLInputElement> }) {
  return (
    <input
      autoComplete="off"
      spellCheck={false}
      {...rest}
      className={cx(BOX, "h-7 px-2 max-md:h-9", mono && "font-mono text-12", className)}
    />
  );
}

export function Textarea({
  className,
  mono,
  ...rest
}: TextareaHTMLAttributes<HTMLTextAreaElement> & {
  mono?: boolean;
  ref?: Ref<HTMLTextAreaElement>;
}) {
  return (
    <textarea
      spellCheck={false}
      rows={4}
      {...rest}
      className={cx(BOX, "px-2 py-1.5", mono && "font-mono text-12", className)}
    />
  );
}

export interface Option<T extends string = string> {
  value: T;
  label: string;
  disabled?: boolean;
}

export function Select<T extends string>({
  options,
  value,
  onChange,
  className,
  placeholder,
  ...rest
}: Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value"> & {
  options: readonly Option<T>[];
  value: T | undefined;
  onChange: (value: T) => void;
  placeholder?: string;
}) {
  return (
    <span className={cx("relative inline-flex min-w-0", className)}>
      <select
        {...rest}
        value={value ?? ""}
        onChange={(e) => onChange(e.target.value as T)}
        className={cx(BOX, "h-7 appearance-none truncate pr-7 pl-2 max-md:h-9")}
      >
        {placeholder !== undefined && <option value="">{placeholder}</option>}
        {options.map((o) => (
          <option key={o.value} value={o.value} disabled={o.disabled}>
            {o.label}
          </option>
        ))}
      </select>
      <ChevronDown
        size={14}
        aria-hidden
        className="-translate-y-1/2 pointer-events-none absolute top-1/2 right-2 text-muted"
      />
    </span>
  );
}

/** Text to search by. It reports after a pause in typing; `/` puts the cursor into it. */
export function SearchInput({
  value,
  onChange,
  label,
  placeholder = label,
  delay = 200,
  slash = true,
  className,
}: {
  value: string | undefined;
  onChange: (value: string) => void;
  label: string;
  placeholder?: string;
  delay?: number;
  slash?: boolean;
  className?: string;
}) {
  const [text, setText] = useState(value ?? "");
  const sent = useRef(value ?? "");
  const input = useRef<HTMLInputElement>(null);
  const report = useRef(onChange);
  report.current = onChange;

  // The address can change it too: a saved view, a step back.
  useEffect(() => {
    if ((value ?? "") !== sent.current) {
      sent.current = value ?? "";
      setText(value ?? "");
    }
  }, [value]);

  useEffect(() => {
    if (text === sent.current) return;
    const t = setTimeout(() => {
      sent.current = text;
      report.current(text);
    }, delay);
    return () => clearTimeout(t);
  }, [text, delay]);

  return (
    <span className={cx("relative inline-flex min-w-0", className)}>
      <Search
        size={14}
        aria-hidden
        className="-translate-y-1/2 pointer-events-none absolute top-1/2 left-2 text-faint"
      />
      <input
        ref={input}
        type="text"
        role="searchbox"
        aria-label={label}
        placeholder={placeholder}
        value={text}
        autoComplete="off"
        spellCheck={false}
        data-slash={slash || undefined}
        onChange={(e) => setText(e.target.value)}
        onKeyDown={(e) => {
          if (e.key !== "Escape") return;
          e.stopPropagation();
          if (text) setText("");
          else input.current?.blur();
        }}
        className={cx(BOX, "h-7 px-7 max-md:h-9")}
      />
      {text && (
        <button
          type="button"
          aria-label="Clear"
          onClick={() => {
            setText("");
            input.current?.focus();
          }}
          className="-translate-y-1/2 absolute top-1/2 right-1 rounded-sm p-1 text-faint hover:text-fg"
        >
          <X size={12} aria-hidden />
        </button>
      )}
    </span>
  );
}

export function Checkbox({
  label,
  hideLabel,
  indeterminate,
  className,
  ...rest
}: Omit<InputHTMLAttributes<HTMLInputElement>, "type"> & {
  label: ReactNode;
  hideLabel?: boolean;
  indeterminate?: boolean;
}) {
  return (
    <label className={cx("inline-flex min-w-0 items-center gap-2", className)}>
      <input
        {...rest}
        type="checkbox"
        ref={(el) => {
          if (el) el.indeterminate = Boolean(indeterminate);
        }}
        aria-label={hideLabel && typeof label === "string" ? label : undefined}
        className="box size-3.5 shrink-0 max-md:size-4"
      />
      {!hideLabel && <span className="min-w-0 truncate">{label}</span>}
    </label>
  );
}

export function Switch({
  label,
  checked,
  onChange,
  disabled,
}: {
  label: ReactNode;
  checked: boolean;
  onChange: (on: boolean) => void;
  disabled?: boolean;
}) {
  return (
    <label className={cx("inline-flex items-center gap-2", disabled && "opacity-50")}>
      <input
        type="checkbox"
        role="switch"
        aria-checked={checked}
        checked={checked}
        disabled={disabled}
        onChange={(e) => onChange(e.target.checked)}
        className="peer sr-only"
      />
      <span
        aria-hidden
        className="relative h-4 w-7 shrink-0 rounded-full bg-line-strong outline-focus transition-colors duration-(--motion) after:absolute after:top-0.5 after:left-0.5 after:size-3 after:rounded-full after:bg-surface after:transition-transform after:duration-(--motion) peer-checked:bg-accent peer-checked:after:translate-x-3 peer-focus-visible:outline-2 peer-focus-visible:outline-offset-2"
      />
      <span>{label}</span>
    </label>
  );
}

/** One of a few, all of them seen. */
export function Segmented<T extends string>({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly Option<T>[];
  value: T;
  onChange: (value: T) => void;
}) {
  const name = useId();
  return (
    <fieldset className="inline-flex h-7 w-fit max-w-full shrink-0 overflow-x-auto rounded-md border border-line-strong bg-surface-2 p-0.5 max-md:h-9">
      <legend className="sr-only">{label}</legend>
      {options.map((o) => (
        <label
          key={o.value}
          className={cx(
            "relative inline-flex cursor-pointer items-center whitespace-nowrap rounded-sm px-2 text-12 outline-focus has-focus-visible:outline-2",
            o.value === value
              ? "bg-raised font-medium text-fg ring-1 ring-line-strong"
              : "text-muted hover:text-fg",
            o.disabled && "opacity-50",
          )}
        >
          <input
            type="radio"
            name={name}
            value={o.value}
            checked={o.value === value}
            disabled={o.disabled}
            onChange={() => onChange(o.value)}
            className="sr-only"
          />
          {o.label}
        </label>
      ))}
    </fieldset>
  );
}
