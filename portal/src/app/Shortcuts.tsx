import { Dialog, Kbd } from "@/design";
import { store, useStore } from "@/lib/store";
import { useAllActions } from "./keyboard";

const shown = store(false);
export const openShortcuts = () => shown.set(true);

const TABLES: [string, string][] = [
  ["j", "Next row"],
  ["k", "Previous row"],
  ["x", "Select the row; with Shift, all up to it"],
  ["enter", "Open the row"],
  ["esc", "Close, or clear the selection"],
  ["/", "Search on this page"],
];

/** All keys there are at this moment, from the actions that are offered. */
export function Shortcuts() {
  const open = useStore(shown);
  const actions = useAllActions().filter((a) => a.keys);
  const groups = [...new Set(actions.map((a) => a.group))];
  return (
    <Dialog open={open} onClose={() => shown.set(false)} title="Keyboard shortcuts" width={560}>
      <div className="grid gap-6 sm:grid-cols-2">
        {groups.map((g) => (
          <Group
            key={g}
            title={g}
            rows={actions.filter((a) => a.group === g).map((a) => [a.keys as string, a.label])}
          />
        ))}
        <Group title="Tables" rows={TABLES} />
      </div>
    </Dialog>
  );
}

function Group({ title, rows }: { title: string; rows: readonly (readonly [string, string])[] }) {
  return (
    <section>
      <h3 className="mb-1 font-medium text-12 text-muted">{title}</h3>
      <dl>
        {rows.map(([keys, label]) => (
          <div key={keys} className="flex items-center justify-between gap-4 py-0.5">
            <dt>{label}</dt>
            <dd>
              <Kbd keys={keys} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
