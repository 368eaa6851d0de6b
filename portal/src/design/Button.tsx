import { createLink } from "@tanstack/react-router";
import { LoaderCircle, type LucideIcon } from "lucide-react";
import type { AnchorHTMLAttributes, ButtonHTMLAttributes, ReactNode, Ref } from "react";
import { cx } from "@/lib/cx";
import { Tooltip } from "./Tooltip";

export type Look = "primary" | "secondary" | "quiet" | "danger";

interface Common {
  look?: Look;
  size?: "md" | "sm";
  icon?: LucideIcon;
  /** Only the icon is seen; the label is read out and shown as a tooltip. */
  iconOnly?: boolean;
  /** Key that does the same, shown in the tooltip. */
  keys?: string;
}

const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-accent-text font-medium hover:bg-accent-strong",
  secondary: "border border-line-strong bg-surface text-fg hover:bg-surface-2",
  quiet: "text-muted hover:bg-surface-2 hover:text-fg",
  danger: "border border-line-strong bg-surface text-bad hover:border-bad hover:bg-failed-soft",
};

function classes({ look = "secondary", size = "md", iconOnly }: Common, dead: boolean) {
  return cx(
    "inline-flex shrink-0 select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-md text-13 transition-[background-color,border-color,opacity] duration-(--motion)",
    size === "md" ? "h-7 max-md:h-9" : "h-6 text-12 max-md:h-8",
    iconOnly
      ? size === "md"
        ? "w-7 max-md:w-9"
        : "w-6 max-md:w-8"
      : size === "md"
        ? "px-2.5"
        : "px-2",
    LOOKS[look],
    dead && "opacity-50",
  );
}

export interface ButtonProps extends Common, ButtonHTMLAttributes<HTMLButtonElement> {
  /** Shows that it is being done, and takes no second click. */
  busy?: boolean;
  /** Why one may not: the button stays, does nothing, and says so. */
  denied?: string | undefined;
  ref?: Ref<HTMLButtonElement>;
}

export function Button({
  look,
  size,
  icon: Icon,
  iconOnly,
  keys,
  busy,
  denied,
  children,
  className,
  disabled,
  onClick,
  type = "button",
  ...rest
}: ButtonProps) {
  const dead = Boolean(disabled || denied);
  const button = (
    <button
      {...rest}
      type={type}
      className={cx(classes({ look, size, iconOnly } as Common, dead), className)}
      disabled={disabled}
      aria-disabled={denied || busy ? true : undefined}
      aria-busy={busy || undefined}
      aria-label={iconOnly && typeof children === "string" ? children : rest["aria-label"]}
      onClick={(event) => {
        if (denied || busy) {
          event.preventDefault();
          return;
        }
        onClick?.(event);
      }}
    >
      <Inside icon={Icon} busy={busy} iconOnly={iconOnly}>
        {children}
      </Inside>
    </button>
  );
  const tip = denied ?? (iconOnly || keys ? <Hint text={children} keys={keys} /> : undefined);
  return tip ? <Tooltip text={tip}>{button}</Tooltip> : button;
}

function Hint({ text, keys }: { text: ReactNode; keys: string | undefined }) {
  return (
    <span className="flex items-center gap-2">
      {text}
      {keys && <Kbd keys={keys} />}
    </span>
  );
}

function Inside({
  icon: Icon,
  busy,
  iconOnly,
  children,
}: {
  icon: LucideIcon | undefined;
  busy?: boolean | undefined;
  iconOnly: boolean | undefined;
  children: ReactNode;
}) {
  return (
    <>
      {busy ? (
        <LoaderCircle size={14} className="animate-spin" aria-hidden />
      ) : (
        Icon && <Icon size={iconOnly ? 16 : 14} strokeWidth={1.75} aria-hidden />
      )}
      {!iconOnly && children}
    </>
  );
}

type AnchorProps = Common &
  AnchorHTMLAttributes<HTMLAnchorElement> & { ref?: Ref<HTMLAnchorElement> };

/** An ordinary address that looks like a button: a download, a sign-in elsewhere. */
export function AnchorButton({
  look,
  size,
  icon,
  iconOnly,
  keys,
  children,
  className,
  ...rest
}: AnchorProps) {
  const a = (
    <a
      {...rest}
      className={cx(classes({ look, size, iconOnly } as Common, false), className)}
      aria-label={iconOnly && typeof children === "string" ? children : rest["aria-label"]}
    >
      <Inside icon={icon} iconOnly={iconOnly}>
        {children}
      </Inside>
    </a>
  );
  return iconOnly || keys ? <Tooltip text={<Hint text={children} keys={keys} />}>{a}</Tooltip> : a;
}

/** `<LinkButton to="/new" look="primary">New job</LinkButton>`, with the router's types. */
export const LinkButton = createLink(AnchorButton);

function PlainAnchor({
  className,
  ...rest
}: AnchorHTMLAttributes<HTMLAnchorElement> & { ref?: Ref<HTMLAnchorElement> }) {
  return (
    <a {...rest} className={cx("text-accent underline-offset-2 hover:underline", className)} />
  );
}

/** A link within text or a table. */
export const TextLink = createLink(PlainAnchor);

const MAC = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

/** `Kbd keys="mod+k"`: one box per key; mod is Ctrl, or Command on a Mac. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="inline-flex gap-0.5">
      {keys.split(/[+ ]/).map((key) => (
        <kbd
          key={key}
          className="inline-flex h-4 min-w-4 items-center justify-center rounded-sm border border-line-strong bg-surface-2 px-1 font-sans text-[11px] text-muted leading-none"
        >
          {KEY_NAMES[key] ?? key.toUpperCase()}
        </kbd>
      ))}
    </span>
  );
}

const KEY_NAMES: Record<string, string> = {
  mod: MAC ? "⌘" : "Ctrl",
  shift: "Shift",
  enter: "Enter",
  esc: "Esc",
  up: "↑",
  down: "↓",
};
