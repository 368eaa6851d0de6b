import { X } from "lucide-react";
import { AlertDialog, DropdownMenu, Dialog as Radix, Popover as RadixPopover } from "radix-ui";
import { type ReactNode, useState } from "react";
import { asApiError } from "@/api/error";
import { cx } from "@/lib/cx";
import { Button } from "./Button";
import { ErrorNote } from "./States";

const SCRIM = "fixed inset-0 z-40 bg-scrim data-[state=open]:animate-[fade_var(--motion)]";
const PANEL =
  "-translate-x-1/2 fixed outline-none top-[12vh] left-1/2 z-40 flex max-h-[76vh] w-[calc(100vw-24px)] flex-col overflow-hidden rounded-md bg-raised shadow-float data-[state=open]:animate-[fade_var(--motion)]";

/** A question or a short form over the page. What is long belongs into a drawer or a page. */
export function Dialog({
  open,
  onClose,
  title,
  description,
  children,
  footer,
  width = 480,
}: {
  open: boolean;
  onClose: () => void;
  title: string;
  description?: ReactNode;
  children?: ReactNode;
  /** Buttons; the one that does it last. */
  footer?: ReactNode;
  width?: number;
}) {
  return (
    <Radix.Root open={open} onOpenChange={(o) => !o && onClose()}>
      <Radix.Portal>
        <Radix.Overlay className={SCRIM} />
        <Radix.Content
          className={PANEL}
          style={{ maxWidth: width }}
          onOpenAutoFocus={(e) => {
            // Into the first field; where there is none, onto the dialog and not onto its "Close".
            const panel = e.currentTarget as HTMLElement;
            e.preventDefault();
            (panel.querySelector<HTMLElement>("input,select,textarea") ?? panel).focus();
          }}
          {...(description ? {} : { "aria-describedby": undefined })}
        >
          <div className="flex items-start gap-3 border-line border-b px-4 py-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="font-semibold text-14 wrap-anywhere">{title}</Radix.Title>
              {description && (
                <Radix.Description className="text-muted">{description}</Radix.Description>
              )}
            </div>
            <Radix.Close asChild>
              <Button look="quiet" icon={X} iconOnly size="sm">
                Close
              </Button>
            </Radix.Close>
          </div>
          <div className="min-h-0 flex-1 overflow-y-auto p-4">{children}</div>
          {footer && (
            <div className="flex justify-end gap-2 border-line border-t px-4 py-3">{footer}</div>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/**
 * Asks before something is lost, and says what: "11 min since the last checkpoint". Not for what can
 * be undone. It stays open with the error when the API refuses.
 */
export function Confirm({
  open,
  onClose,
  title,
  loses,
  children,
  verb,
  harmless,
  onConfirm,
}: {
  open: boolean;
  onClose: () => void;
  /** A question: "Stop 4711 llama-70b?" */
  title: string;
  /** What is lost, a line each, with its amount. */
  loses?: readonly { what: ReactNode; amount?: ReactNode }[];
  children?: ReactNode;
  /** On the button: "Stop the job". Never "OK". */
  verb: string;
  /** Nothing is lost: the button is not red. */
  harmless?: boolean;
  onConfirm: () => Promise<unknown> | unknown;
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const close = () => {
    if (busy) return;
    setError(undefined);
    onClose();
  };
  const go = async () => {
    setBusy(true);
    setError(undefined);
    try {
      await onConfirm();
      setBusy(false);
      onClose();
    } catch (e) {
      setBusy(false);
      setError(e);
    }
  };
  return (
    <AlertDialog.Root open={open} onOpenChange={(o) => !o && close()}>
      <AlertDialog.Portal>
        <AlertDialog.Overlay className={SCRIM} />
        <AlertDialog.Content className={PANEL} style={{ maxWidth: 440 }}>
          <div className="min-h-0 overflow-y-auto p-4">
            <AlertDialog.Title className="font-semibold text-14 wrap-anywhere">
              {title}
            </AlertDialog.Title>
            <AlertDialog.Description asChild>
              <div className="mt-2 flex flex-col gap-3">
                {loses && loses.length > 0 && (
                  <ul className="divide-y divide-line rounded-md border border-line">
                    {loses.map((l, i) => (
                      <li key={i} className="flex justify-between gap-4 px-3 py-1.5">
                        <span className="min-w-0 wrap-anywhere">{l.what}</span>
                        {l.amount !== undefined && (
                          <span className="shrink-0 font-medium">{l.amount}</span>
                        )}
                      </li>
                    ))}
                  </ul>
                )}
                {children && <div className="text-muted">{children}</div>}
              </div>
            </AlertDialog.Description>
            {error !== undefined && (
              <div className="mt-3">
                <ErrorNote error={asApiError(error)} />
              </div>
            )}
          </div>
          <div className="flex justify-end gap-2 border-line border-t px-4 py-3">
            <AlertDialog.Cancel asChild>
              <Button>Keep</Button>
            </AlertDialog.Cancel>
            <Button
              busy={busy}
              onClick={go}
              look={harmless ? "primary" : "danger"}
              className={harmless ? undefined : "bg-bad! text-surface! font-medium"}
            >
              {verb}
            </Button>
          </div>
        </AlertDialog.Content>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}

const FLOAT =
  "z-50 rounded-md bg-raised shadow-float data-[state=open]:animate-[fade_var(--motion)] max-h-(--radix-popper-available-height) overflow-y-auto";

/** Anything that opens beside its button. */
export function Popover({
  trigger,
  placed,
  children,
  align = "start",
  width,
  open,
  onOpenChange,
  label,
}: {
  trigger: ReactNode;
  /** The trigger opens it by itself, through `open`: it is only the place beside which it opens. */
  placed?: boolean;
  children: ReactNode;
  align?: "start" | "center" | "end";
  width?: number;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  label?: string;
}) {
  return (
    <RadixPopover.Root
      {...(open !== undefined && { open })}
      {...(onOpenChange && { onOpenChange })}
    >
      {placed ? (
        <RadixPopover.Anchor asChild>{trigger}</RadixPopover.Anchor>
      ) : (
        <RadixPopover.Trigger asChild>{trigger}</RadixPopover.Trigger>
      )}
      <RadixPopover.Portal>
        <RadixPopover.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          aria-label={label}
          className={FLOAT}
          style={{ width, maxWidth: "calc(100vw - 16px)" }}
        >
          {children}
        </RadixPopover.Content>
      </RadixPopover.Portal>
    </RadixPopover.Root>
  );
}

export interface MenuItem {
  label: ReactNode;
  icon?: import("lucide-react").LucideIcon;
  keys?: ReactNode;
  onSelect?: () => void;
  /** Why one may not. */
  denied?: string | undefined;
  danger?: boolean;
  checked?: boolean;
}

/** Actions behind one button. `"-"` is a line between groups, a string a heading. */
export function Menu({
  trigger,
  items,
  align = "end",
  header,
}: {
  trigger: ReactNode;
  items: readonly (MenuItem | string | false | null | undefined)[];
  align?: "start" | "end";
  header?: ReactNode;
}) {
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align={align}
          sideOffset={6}
          collisionPadding={8}
          className={cx(FLOAT, "min-w-44 max-w-80 p-1")}
        >
          {header}
          {items.map((item, i) => {
            if (!item) return null;
            if (item === "-")
              return <DropdownMenu.Separator key={i} className="-mx-1 my-1 h-px bg-line" />;
            if (typeof item === "string")
              return (
                <DropdownMenu.Label
                  key={i}
                  className="px-2 pt-1.5 pb-0.5 font-medium text-12 text-faint"
                >
                  {item}
                </DropdownMenu.Label>
              );
            const Icon = item.icon;
            return (
              <DropdownMenu.Item
                key={i}
                disabled={Boolean(item.denied)}
                onSelect={() => item.onSelect?.()}
                className={cx(
                  "flex min-h-7 cursor-default select-none items-center gap-2 rounded-sm px-2 py-1 outline-none data-highlighted:bg-surface-2 max-md:min-h-9",
                  item.danger && "text-bad",
                  item.denied && "text-faint",
                )}
              >
                {Icon && <Icon size={14} strokeWidth={1.75} aria-hidden className="shrink-0" />}
                <span className="min-w-0 flex-1">
                  <span className="block truncate">{item.label}</span>
                  {item.denied && <span className="block text-12">{item.denied}</span>}
                </span>
                {item.checked && <span aria-hidden>✓</span>}
                {item.keys}
              </DropdownMenu.Item>
            );
          })}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
