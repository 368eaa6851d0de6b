import { ChevronDown, ChevronUp, X } from "lucide-react";
import { Dialog } from "radix-ui";
import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "./Button";
import { CommandBar } from "./CommandBar";

/** Whether keys belong to what is typed into and not to the page. */
export function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName) ||
      target.closest("[role=menu],[role=listbox],.cm-editor,.xterm") !== null)
  );
}

/**
 * Details of a row, beside it. Which row is in the address: `open` comes from a search parameter and
 * `onClose`, `onStep` change it. Escape closes; j, k and the arrows go to the next and the previous.
 */
export function Drawer({
  open,
  onClose,
  onStep,
  title,
  subtitle,
  actions,
  children,
  command,
  width = 520,
}: {
  open: boolean;
  onClose: () => void;
  /** By one row: 1 forth, -1 back. Left out where there are no neighbours. */
  onStep?: (by: 1 | -1) => void;
  title: ReactNode;
  subtitle?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  command?: string;
  width?: number;
}) {
  const step = useRef(onStep);
  step.current = onStep;
  useEffect(() => {
    if (!open) return;
    const onKey = (e: KeyboardEvent) => {
      if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || typing(e.target)) return;
      const by =
        e.key === "j" || e.key === "ArrowDown" ? 1 : e.key === "k" || e.key === "ArrowUp" ? -1 : 0;
      if (by === 0 || !step.current) return;
      // Arrows scroll what has the focus within the drawer.
      if (e.key.startsWith("Arrow") && (e.target as HTMLElement).closest?.("[data-scrolls]"))
        return;
      e.preventDefault();
      step.current(by);
    };
    window.addEventListener("keydown", onKey, true);
    return () => window.removeEventListener("keydown", onKey, true);
  }, [open]);

  return (
    <Dialog.Root open={open} onOpenChange={(o) => !o && onClose()} modal={false}>
      <Dialog.Portal>
        <Dialog.Content
          aria-describedby={undefined}
          onInteractOutside={(e) => e.preventDefault()}
          onOpenAutoFocus={(e) => {
            e.preventDefault();
            (e.currentTarget as HTMLElement).focus();
          }}
          className="fixed top-(--topbar) right-0 bottom-0 z-30 flex max-w-full animate-[slide_var(--motion)] flex-col border-line border-l bg-surface shadow-float outline-none max-md:top-0 max-md:w-full!"
          style={{ width }}
        >
          <div className="flex min-h-12 items-start gap-2 border-line border-b py-2 pr-2 pl-4">
            <div className="min-w-0 flex-1 py-0.5">
              <Dialog.Title className="truncate font-semibold text-14 leading-6">
                {title}
              </Dialog.Title>
              {subtitle && <div className="truncate text-12 text-muted">{subtitle}</div>}
            </div>
            {onStep && (
              <>
                <Button look="quiet" icon={ChevronUp} iconOnly keys="k" onClick={() => onStep(-1)}>
                  Previous
                </Button>
                <Button look="quiet" icon={ChevronDown} iconOnly keys="j" onClick={() => onStep(1)}>
                  Next
                </Button>
              </>
            )}
            <Button look="quiet" icon={X} iconOnly keys="esc" onClick={onClose}>
              Close
            </Button>
          </div>
          {actions && (
            <div className="flex flex-wrap items-center gap-2 border-line border-b px-4 py-2">
              {actions}
            </div>
          )}
          <div className="min-h-0 flex-1 overflow-y-auto p-4">{children}</div>
          {command && <CommandBar command={command} />}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

/** Which row comes `by` rows after the one that is open. */
export function neighbour<T>(
  rows: readonly T[],
  id: (row: T) => string,
  open: string | undefined,
  by: 1 | -1,
) {
  const at = rows.findIndex((r) => id(r) === open);
  const row = rows[at + by];
  return at < 0 || !row ? undefined : id(row);
}
