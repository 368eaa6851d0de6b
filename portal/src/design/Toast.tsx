import { Check, CircleAlert, X } from "lucide-react";
import type { ReactNode } from "react";
import { store, useStore } from "@/lib/store";
import { Button } from "./Button";

interface Shown {
  id: number;
  text: ReactNode;
  tone: "done" | "bad";
  action?: { label: string; onClick: () => void };
}

const shown = store<Shown[]>([]);
let next = 1;

/** Says that something was done. What matters also stands on the page; errors do not belong here. */
export function toast(
  text: ReactNode,
  opts: { tone?: "done" | "bad"; action?: { label: string; onClick: () => void } } = {},
) {
  const id = next++;
  shown.set((all) => [
    ...all.slice(-2),
    { id, text, tone: opts.tone ?? "done", ...(opts.action && { action: opts.action }) },
  ]);
  setTimeout(() => dismiss(id), opts.action ? 10_000 : 5000);
}

function dismiss(id: number) {
  shown.set((all) => all.filter((t) => t.id !== id));
}

export function Toasts() {
  const all = useStore(shown);
  return (
    <div
      role="status"
      aria-live="polite"
      className="pointer-events-none fixed right-3 bottom-12 z-50 flex w-80 max-w-[calc(100vw-24px)] flex-col gap-2 max-md:bottom-18"
    >
      {all.map((t) => (
        <div
          key={t.id}
          className="pointer-events-auto flex animate-[fade_var(--motion)] items-start gap-2 rounded-md bg-raised py-2 pr-1.5 pl-3 shadow-float"
        >
          {t.tone === "done" ? (
            <Check size={14} className="mt-[3px] shrink-0 text-good" aria-hidden />
          ) : (
            <CircleAlert size={14} className="mt-[3px] shrink-0 text-bad" aria-hidden />
          )}
          <div className="min-w-0 flex-1 wrap-anywhere">{t.text}</div>
          {t.action && (
            <Button
              size="sm"
              onClick={() => {
                t.action?.onClick();
                dismiss(t.id);
              }}
            >
              {t.action.label}
            </Button>
          )}
          <Button look="quiet" size="sm" icon={X} iconOnly onClick={() => dismiss(t.id)}>
            Dismiss
          </Button>
        </div>
      ))}
    </div>
  );
}
