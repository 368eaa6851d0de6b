import { useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useEffect, useMemo, useRef } from "react";
import { useOneTeam } from "@/api/one-team";
import type { Lineage } from "@/api/types";
import { Button, ErrorState, Money, Note, Page, Segmented, Skeleton } from "@/design";
import { count } from "@/lib/format";
import { LineageGraph } from "@/viz/lineage-graph/LineageGraph";
import { Details } from "./Details";
import { lineageQuery } from "./data";
import { ListView } from "./ListView";
import { canBegin, graphOf, kindOf, lineageCommand, nameOf, summary } from "./model";
import { Asker, Start } from "./Start";
import type { LineageSearch } from "./search";

const route = getRouteApi("/lineage");

const VIEWS = [
  { value: "graph", label: "Graph" },
  { value: "list", label: "List" },
] as const;
const WAYS = [
  { value: "both", label: "Both" },
  { value: "up", label: "Made from" },
  { value: "down", label: "Made into" },
] as const;

/** The lineage of a model, run, job or version of data, as a graph or a list. */
export default function LineagePage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const team = useOneTeam(search.team);
  const set = (change: LineageSearch, replace = true) =>
    void navigate({ search: (old) => ({ ...old, ...change }), replace });
  const way = search.way ?? "both";
  const found = useQuery({
    ...lineageQuery(search.of ?? "", team, way),
    enabled: search.of !== undefined && team !== undefined,
  });
  // On a phone the list is easier to read than the graph.
  const view = search.view ?? (window.innerWidth < 640 ? "list" : "graph");
  const ask = (of: string) => set({ of, node: undefined }, false);

  if (search.of === undefined)
    return (
      <Page title="Lineage" command={lineageCommand(undefined, search.team)}>
        <Start team={team} onAsk={ask} />
      </Page>
    );
  return (
    <Page
      title="Lineage"
      fill
      command={lineageCommand(search.of, team)}
      subtitle={found.data && <Sum of={found.data} />}
      toolbar={
        <>
          <Asker of={search.of} onAsk={ask} />
          <Segmented
            label="Direction"
            options={WAYS}
            value={way}
            onChange={(to) => set({ way: to === "both" ? undefined : to })}
          />
          <Segmented
            label="View"
            options={VIEWS}
            value={view}
            onChange={(to) => set({ view: to })}
          />
        </>
      }
    >
      {found.error && !found.isPlaceholderData ? (
        <div className="min-h-0 flex-1 overflow-y-auto border-line border-t">
          <ErrorState error={found.error} onRetry={() => void found.refetch()} />
        </div>
      ) : found.data ? (
        <Found
          of={found.data}
          view={view}
          chosen={search.node}
          stale={found.isPlaceholderData}
          onChoose={(node) => set({ node })}
          onAsk={ask}
          team={team}
        />
      ) : (
        <div
          data-skeleton
          aria-busy="true"
          className="flex flex-col gap-3 border-line border-t p-4"
        >
          <Skeleton width="30%" height={44} />
          <Skeleton width="45%" height={44} />
          <Skeleton width="38%" height={44} />
        </div>
      )}
    </Page>
  );
}

function Sum({ of }: { of: Lineage }) {
  return (
    <>
      {summary(of)}{" "}
      {of.cost_micros > 0 && (
        <>
          Its jobs have cost <Money micros={of.cost_micros} />
          {of.gpu_ms > 0 && ` in ${count(of.gpu_ms / 3_600_000, 1)} GPU-hours`}.
        </>
      )}
    </>
  );
}

function Found({
  of,
  view,
  chosen,
  stale,
  onChoose,
  onAsk,
  team,
}: {
  of: Lineage;
  view: "graph" | "list";
  chosen: string | undefined;
  stale: boolean;
  onChoose: (id: string | undefined) => void;
  onAsk: (of: string) => void;
  team: string | undefined;
}) {
  const { nodes, links } = useMemo(() => graphOf(of), [of]);
  const node = of.nodes.find((n) => n.id === chosen) ?? of.nodes.find((n) => n.id === of.of);
  const root = of.nodes.find((n) => n.id === of.of);
  const details = useRef<HTMLElement>(null);
  const before = useRef(chosen);
  // On a narrow page the details are below the graph, so scroll to them.
  useEffect(() => {
    if (chosen !== undefined && chosen !== before.current && window.innerWidth < 1024)
      details.current?.scrollIntoView({ block: "nearest" });
    before.current = chosen;
  }, [chosen]);
  return (
    <div
      aria-busy={stale || undefined}
      className="min-h-0 flex-1 border-line border-t max-lg:overflow-y-auto lg:grid lg:grid-cols-[minmax(0,1fr)_360px]"
    >
      <div className="flex min-h-0 min-w-0 flex-col">
        {of.more && (
          <div className="p-3 pb-0">
            <Note tone="warn">
              The lineage is larger than the limit. Show one direction only, or choose another
              start.
            </Note>
          </div>
        )}
        {view === "graph" ? (
          <div className="min-h-0 flex-1 max-lg:h-[52vh] max-lg:flex-none">
            <LineageGraph
              label={`Lineage of ${root ? `${kindOf(root.kind).word} ${nameOf(root)}` : of.of}`}
              nodes={nodes}
              links={links}
              root={of.of}
              chosen={node?.id}
              onChoose={onChoose}
            />
          </div>
        ) : (
          <div className="min-h-0 flex-1 overflow-y-auto p-4 max-lg:overflow-visible">
            <ListView of={of} chosen={node?.id} onChoose={onChoose} />
          </div>
        )}
      </div>
      {node && (
        <aside
          ref={details}
          aria-label={`Details of ${nameOf(node)}`}
          className="min-h-0 scroll-mt-2 overflow-y-auto border-line p-4 max-lg:border-t lg:border-l"
        >
          <Details
            key={node.id}
            of={of}
            node={node}
            team={team}
            onChoose={onChoose}
            {...(node.id !== of.of && canBegin(node) && { onAsk: () => onAsk(node.id) })}
          />
        </aside>
      )}
      {!node && (
        <div className="p-4">
          <Button onClick={() => onChoose(undefined)}>Show the start</Button>
        </div>
      )}
    </div>
  );
}
