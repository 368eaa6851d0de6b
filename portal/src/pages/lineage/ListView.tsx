import type { Lineage, LineageNode } from "@/api/types";
import { cx } from "@/lib/cx";
import { type Branch, type Direction, kindOf, nameOf, noteOf, treeOf } from "./model";

const DOTS: Record<number, string> = {
  1: "bg-series-1",
  2: "bg-series-2",
  3: "bg-series-3",
  4: "bg-series-4",
  5: "bg-series-5",
  6: "bg-series-6",
  7: "bg-series-7",
  8: "bg-series-8",
};

/** The graph as nested lists, for screen readers, phones and the search of the browser. */
export function ListView({
  of,
  chosen,
  onChoose,
}: {
  of: Lineage;
  chosen: string | undefined;
  onChoose: (id: string) => void;
}) {
  const root = of.nodes.find((n) => n.id === of.of);
  return (
    <div className="flex flex-col gap-4">
      <Side of={of} direction="before" title="Made from" none="No inputs are recorded.">
        {(branches) => <Tree of={of} branches={branches} chosen={chosen} onChoose={onChoose} />}
      </Side>
      {root && (
        <section aria-label="Start of the lineage">
          <h2 className="mb-1 font-medium">Start of the lineage</h2>
          <Row of={of} node={root} chosen={chosen} onChoose={onChoose} />
        </section>
      )}
      <Side of={of} direction="after" title="Made into" none="No outputs yet.">
        {(branches) => <Tree of={of} branches={branches} chosen={chosen} onChoose={onChoose} />}
      </Side>
    </div>
  );
}

function Side({
  of,
  direction,
  title,
  none,
  children,
}: {
  of: Lineage;
  direction: Direction;
  title: string;
  none: string;
  children: (branches: Branch[]) => React.ReactNode;
}) {
  const branches = treeOf(of, of.of, direction);
  return (
    <section aria-label={title}>
      <h2 className="mb-1 font-medium">{title}</h2>
      {branches.length === 0 ? <p className="text-muted">{none}</p> : children(branches)}
    </section>
  );
}

function Tree({
  of,
  branches,
  chosen,
  onChoose,
  depth = 0,
}: {
  of: Lineage;
  branches: readonly Branch[];
  chosen: string | undefined;
  onChoose: (id: string) => void;
  depth?: number;
}) {
  return (
    <ul
      className={cx(
        "flex flex-col gap-0.5",
        depth > 0 && depth < 8 && "ml-2.5 border-line border-l pl-2.5",
      )}
    >
      {branches.map((b, i) => (
        <li key={`${b.node.id} ${i}`} className="min-w-0">
          <Row
            of={of}
            node={b.node}
            how={b.how}
            again={b.again}
            chosen={chosen}
            onChoose={onChoose}
          />
          {b.branches.length > 0 && (
            // Limit the indentation, so that a phone has room for the text.
            <Tree
              of={of}
              branches={b.branches}
              chosen={chosen}
              onChoose={onChoose}
              depth={Math.min(depth + 1, 8)}
            />
          )}
        </li>
      ))}
    </ul>
  );
}

export function Row({
  of,
  node,
  how,
  again,
  chosen,
  onChoose,
}: {
  of: Lineage;
  node: LineageNode;
  how?: string;
  again?: boolean;
  chosen: string | undefined;
  onChoose: (id: string) => void;
}) {
  const { word, tone } = kindOf(node.kind);
  const note = noteOf(of, node);
  return (
    <button
      type="button"
      aria-pressed={node.id === chosen}
      onClick={() => onChoose(node.id)}
      className={cx(
        "flex min-h-7 w-full min-w-0 items-center gap-2 rounded-sm px-2 py-1 text-left outline-offset-[-2px] max-md:min-h-9",
        node.id === chosen ? "bg-accent-soft" : "hover:bg-surface-2",
      )}
    >
      <span aria-hidden className={cx("size-2 shrink-0 rounded-full", DOTS[tone])} />
      <span className="min-w-0 flex-1 wrap-anywhere">
        <span className="text-muted">{word}</span> <bdi className="font-medium">{nameOf(node)}</bdi>{" "}
        {how && <span className="text-12 text-muted">{how}</span>}
        {again && <span className="text-12 text-muted">, listed above</span>}
      </span>
      {note && <span className="shrink-0 text-12 text-muted tabular-nums">{note}</span>}
    </button>
  );
}
