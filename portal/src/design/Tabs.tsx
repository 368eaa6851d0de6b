import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { count } from "@/lib/format";
import { intoView } from "@/lib/into-view";

export interface Tab<T extends string = string> {
  value: T;
  label: string;
  count?: number | undefined;
}

/** Views of one thing. The value belongs into the address: `value={search.tab}`. */
export function Tabs<T extends string>({
  tabs,
  value,
  onChange,
  label,
  children,
}: {
  tabs: readonly Tab<T>[];
  value: T;
  onChange: (value: T) => void;
  label: string;
  /** What the tab shows. */
  children?: ReactNode;
}) {
  return (
    <Radix.Root
      value={value}
      onValueChange={(v) => onChange(v as T)}
      activationMode="manual"
      className="flex min-h-0 flex-1 flex-col"
    >
      <Radix.List
        aria-label={label}
        className="flex shrink-0 gap-1 overflow-x-auto border-line border-b px-3 [scrollbar-width:none]"
      >
        {tabs.map((t) => (
          <Radix.Trigger
            key={t.value}
            value={t.value}
            ref={t.value === value ? intoView : undefined}
            className="-mb-px inline-flex h-9 items-center gap-1.5 whitespace-nowrap border-transparent border-b-2 px-2 text-muted outline-offset-[-3px] hover:text-fg data-[state=active]:border-accent data-[state=active]:font-medium data-[state=active]:text-fg"
          >
            {t.label}
            {t.count !== undefined && <span className="text-12 text-faint">{count(t.count)}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      <Radix.Content value={value} tabIndex={-1} className="min-h-0 flex-1 outline-none">
        {children}
      </Radix.Content>
    </Radix.Root>
  );
}
