import { useQuery } from "@tanstack/react-query";
import { Dialog } from "radix-ui";
import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useMemo,
  useRef,
  useState,
} from "react";
import { jobQuery, someJobsQuery } from "@/api/queries";
import { Kbd, StateBadge } from "@/design";
import { cx } from "@/lib/cx";
import { useStore } from "@/lib/store";
import { useAllActions } from "./keyboard";
import { paletteOpen } from "./palette-state";
import { useGo } from "./routes";

interface Item {
  id: string;
  group: string;
  label: string;
  detail?: ReactNode;
  keys?: string | undefined;
  denied?: string | undefined;
  run: () => void;
}

/** Ctrl-K: any job, page or action, without a mouse. */
export function Palette() {
  const open = useStore(paletteOpen);
  // What was chosen says where the focus goes; without a choice it goes back to where it was.
  const chose = useRef(false);
  return (
    <Dialog.Root open={open} onOpenChange={(o) => paletteOpen.set(o)}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Dialog.Content
          aria-describedby={undefined}
          onCloseAutoFocus={(e) => {
            if (chose.current) e.preventDefault();
            chose.current = false;
          }}
          className="-translate-x-1/2 fixed top-[12vh] left-1/2 z-50 flex max-h-[64vh] w-[calc(100vw-24px)] max-w-150 flex-col overflow-hidden rounded-md bg-raised shadow-float"
        >
          <Dialog.Title className="sr-only">Search jobs, pages and actions</Dialog.Title>
          <Inside
            close={() => {
              chose.current = true;
              paletteOpen.set(false);
            }}
          />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function useLater<T>(value: T, ms: number): T {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const t = setTimeout(() => setLater(value), ms);
    return () => clearTimeout(t);
  }, [value, ms]);
  return later;
}

function Inside({ close }: { close: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const listId = useId();
  const list = useRef<HTMLDivElement>(null);
  const go = useGo();
  const actions = useAllActions();
  const asked = useLater(text.trim(), 150);
  const byText = useQuery({
    ...someJobsQuery(asked ? { text: asked } : { state: "active" }, 8),
    staleTime: 5000,
  });
  const number = /^\d+(_\d+)?$/.test(asked);
  const byId = useQuery({ ...jobQuery(asked), enabled: number, retry: false });

  const items = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (label: string) => words.every((w) => label.toLowerCase().includes(w));
    const order = ["This page", "Go to", "Do"];
    const out: Item[] = [...actions]
      .sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group))
      .filter((a) => a.id !== "palette" && fits(`${a.group} ${a.label}`))
      .map((a) => ({
        id: a.id,
        group: a.group,
        label: a.label,
        keys: a.keys,
        denied: a.denied,
        run: a.run,
      }));
    const found = byText.data?.jobs ?? [];
    const jobs =
      number && byId.data ? [byId.data, ...found.filter((j) => j.id !== byId.data.id)] : found;
    const jobItems: Item[] = jobs.map((j) => ({
      id: `job:${j.id}`,
      group: "Jobs",
      label: `${j.id} ${j.name}`,
      detail: (
        <span className="flex items-center gap-3 text-12 text-muted">
          <bdi className="max-md:hidden">{j.team}</bdi>
          <StateBadge state={j.state} />
        </span>
      ),
      run: () => go(`/jobs/${encodeURIComponent(j.id)}`),
    }));
    // What was typed most often means a job; without text the pages are nearer.
    return words.length > 0 ? [...jobItems, ...out] : [...out, ...jobItems];
  }, [text, actions, byText.data, byId.data, number, go]);

  const chosen = Math.min(at, items.length - 1);
  useEffect(() => {
    list.current?.querySelector(`[data-at="${chosen}"]`)?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  const run = (item: Item | undefined) => {
    if (!item || item.denied) return;
    close();
    item.run();
  };
  const onKey = (e: KeyboardEvent) => {
    const step =
      e.key === "ArrowDown" || (e.ctrlKey && e.key === "n")
        ? 1
        : e.key === "ArrowUp" || (e.ctrlKey && e.key === "p")
          ? -1
          : 0;
    if (step !== 0 && items.length > 0) {
      e.preventDefault();
      setAt((chosen + step + items.length) % items.length);
    } else if (e.key === "Enter") {
      e.preventDefault();
      run(items[chosen]);
    }
  };

  return (
    <>
      <input
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls={listId}
        aria-activedescendant={items[chosen] ? `${listId}-${chosen}` : undefined}
        aria-label="Search jobs, pages and actions"
        placeholder="Job by name or number, page or action"
        value={text}
        onChange={(e) => {
          setText(e.target.value);
          setAt(0);
        }}
        onKeyDown={onKey}
        className="h-12 shrink-0 border-line border-b bg-transparent px-4 text-14 outline-none placeholder:text-faint"
        spellCheck={false}
        autoComplete="off"
      />
      <div
        ref={list}
        id={listId}
        role="listbox"
        aria-label="Found"
        className="min-h-0 flex-1 overflow-y-auto p-1"
      >
        {items.map((item, i) => (
          <div key={item.id} role="presentation">
            {item.group !== items[i - 1]?.group && (
              <div role="presentation" className="px-3 pt-2 pb-1 font-medium text-12 text-faint">
                {item.group}
              </div>
            )}
            <div
              role="option"
              id={`${listId}-${i}`}
              data-at={i}
              aria-selected={i === chosen}
              aria-disabled={item.denied ? true : undefined}
              onPointerMove={() => i !== chosen && setAt(i)}
              onClick={() => run(item)}
              className={cx(
                "flex h-8 cursor-default items-center gap-3 rounded-sm px-3",
                i === chosen && "bg-accent-soft",
                item.denied && "text-faint",
              )}
            >
              <bdi className="min-w-0 flex-1 truncate">{item.label}</bdi>
              {item.denied && <span className="truncate text-12">{item.denied}</span>}
              {item.detail}
              {item.keys && <Kbd keys={item.keys} />}
            </div>
          </div>
        ))}
        {items.length === 0 && (
          <p className="px-3 py-6 text-center text-muted" role="status">
            {byText.isFetching ? "Searching…" : "Nothing by that name."}
          </p>
        )}
      </div>
    </>
  );
}
