// Prepares a lineage for the graph, the list and the details. Pure.

import type { Lineage, LineageKind, LineageLink, LineageNode } from "@/api/types";
import { shell } from "@/design/CommandBar";
import { bytes, money, plural } from "@/lib/format";
import type { GraphNode } from "@/viz/lineage-graph/LineageGraph";
import type { Link } from "@/viz/lineage-graph/layout";

const KINDS: Record<LineageKind, { word: string; tone: GraphNode["tone"] }> = {
  model: { word: "Model", tone: 1 },
  logged_model: { word: "Logged model", tone: 5 },
  run: { word: "Run", tone: 3 },
  job: { word: "Job", tone: 7 },
  data: { word: "Data", tone: 2 },
  dataset: { word: "Data set", tone: 6 },
  code: { word: "Code", tone: 4 },
  image: { word: "Image", tone: 8 },
};

/** A newer server may have other kinds. */
export function kindOf(kind: string): { word: string; tone: GraphNode["tone"] } {
  return KINDS[kind as LineageKind] ?? { word: kind.replaceAll("_", " "), tone: 8 };
}

const LINKS: Record<LineageLink, { before: string; after: string }> = {
  registered_from: { before: "registered from it", after: "registered as" },
  logged_by: { before: "logged by it", after: "logged" },
  read_model: { before: "read by it", after: "read by" },
  child_of: { before: "its parent", after: "its child" },
  run_of: { before: "its job", after: "its run" },
  read: { before: "read by it", after: "read by" },
  with_code: { before: "its code", after: "used the code" },
  in_image: { before: "its image", after: "used the image" },
  derived_from: { before: "its source", after: "derived from it" },
  resumed_from: { before: "it resumed from", after: "resumed from it" },
};

/** The label without the kind: `first` for the run `run first`. */
export function nameOf(node: LineageNode): string {
  if (node.hidden) return "of another team";
  const label = (node.label || node.name || node.id).replace(/ \(removed\)$/, "");
  const word = `${kindOf(node.kind).word.toLowerCase()} `;
  const rest = label.startsWith(word) ? label.slice(word.length) : label;
  return rest || node.id;
}

/** The cost. A run has the cost of its job. */
export function costOf(of: Lineage, node: LineageNode): number | undefined {
  const own = node.details.cost_micros ?? undefined;
  if (own !== undefined || node.kind !== "run") return own;
  const job = neighbours(of, node.id, "before").find((n) => n.node.kind === "job");
  return job?.node.details.cost_micros ?? undefined;
}

/** Whether a lineage can begin at the node. It cannot begin at code, an image or a data set. */
export function canBegin(node: LineageNode): boolean {
  return !node.hidden && !["code", "image", "dataset"].includes(node.kind);
}

/** The most important fact about a node, in a few letters. */
export function noteOf(of: Lineage, node: LineageNode): string | undefined {
  const { details } = node;
  if (node.hidden) return undefined;
  if (node.gone) return "removed";
  const cost = costOf(of, node);
  if (cost !== undefined) return money(cost);
  if (details.aliases && details.aliases.length > 0) return `@${details.aliases.join(" @")}`;
  if (details.bytes != null) return bytes(details.bytes);
  if (details.dirty) return "not committed";
  return details.status?.toLowerCase();
}

export function graphOf(of: Lineage): { nodes: GraphNode[]; links: Link[] } {
  return {
    nodes: of.nodes.map((node) => {
      const { word, tone } = kindOf(node.kind);
      return { id: node.id, kind: word, name: nameOf(node), note: noteOf(of, node), tone };
    }),
    // An edge of the API points from an output to its input. The graph points the other way.
    links: of.edges.map((edge) => ({ from: edge.to, to: edge.from })),
  };
}

export type Direction = "before" | "after";

export interface Neighbour {
  node: LineageNode;
  /** The relation in words. */
  how: string;
}

interface Index {
  before: ReadonlyMap<string, readonly Neighbour[]>;
  after: ReadonlyMap<string, readonly Neighbour[]>;
}

/** Cached, because a large lineage looks up the same neighbours many times. */
const indexes = new WeakMap<Lineage, Index>();

function indexOf(of: Lineage): Index {
  const known = indexes.get(of);
  if (known) return known;
  const nodes = new Map(of.nodes.map((node) => [node.id, node]));
  const before = new Map<string, Neighbour[]>();
  const after = new Map<string, Neighbour[]>();
  const put = (into: Map<string, Neighbour[]>, id: string, one: Neighbour) => {
    const list = into.get(id);
    if (list) list.push(one);
    else into.set(id, [one]);
  };
  for (const { from, to, kind } of of.edges) {
    const made = nodes.get(from);
    const source = nodes.get(to);
    if (!made || !source) continue;
    const words = LINKS[kind] ?? {
      before: kind.replaceAll("_", " "),
      after: kind.replaceAll("_", " "),
    };
    put(before, from, { node: source, how: words.before });
    put(after, to, { node: made, how: words.after });
  }
  const index = { before, after };
  indexes.set(of, index);
  return index;
}

/** The inputs or the outputs of a node. */
export function neighbours(of: Lineage, id: string, direction: Direction): readonly Neighbour[] {
  return indexOf(of)[direction].get(id) ?? [];
}

/** The number of all nodes upstream or downstream of a node. */
export function reach(of: Lineage, id: string, direction: Direction): number {
  const seen = new Set([id]);
  const next = [id];
  for (let at = next.pop(); at !== undefined; at = next.pop())
    for (const { node } of neighbours(of, at, direction)) {
      if (seen.has(node.id)) continue;
      seen.add(node.id);
      next.push(node.id);
    }
  return seen.size - 1;
}

export interface Branch extends Neighbour {
  /** The list already has this node above, so its branches are not repeated. */
  again: boolean;
  branches: Branch[];
}

/** One side of a node as a tree, for the list. */
export function treeOf(of: Lineage, id: string, direction: Direction): Branch[] {
  const seen = new Set([id]);
  const below = (at: string): Branch[] => {
    // Mark all nodes of this level first, so that the list shows each at its nearest place.
    const here = neighbours(of, at, direction).map((n) => {
      const again = seen.has(n.node.id);
      seen.add(n.node.id);
      return { ...n, again };
    });
    return here.map((n) => ({ ...n, branches: n.again ? [] : below(n.node.id) }));
  };
  return below(id);
}

export type Target =
  | { to: "/jobs/$job"; params: { job: string } }
  | { to: "/runs/$run"; params: { run: string } }
  | {
      to: "/models/$model";
      params: { model: string };
      search: { team: string; version: string };
    }
  | { to: "/models"; search: { team: string; tab: "data"; open: string } };

/** The page of a node. */
export function targetOf(node: LineageNode): Target | undefined {
  if (node.hidden || node.gone) return undefined;
  const { name, team } = node;
  switch (node.kind) {
    case "job":
      return { to: "/jobs/$job", params: { job: node.id.slice("job:".length) } };
    case "run":
      return { to: "/runs/$run", params: { run: node.id.slice("run:".length) } };
    case "model": {
      const at = name.lastIndexOf("@");
      if (at < 1) return undefined;
      const [model, version] = [name.slice(0, at), name.slice(at + 1)];
      return { to: "/models/$model", params: { model }, search: { team, version } };
    }
    case "data":
      return { to: "/models", search: { team, tab: "data", open: name } };
    default:
      return undefined;
  }
}

/** The run itself, or the run that logged the model. */
export function runBehind(of: Lineage, node: LineageNode): string | undefined {
  if (node.hidden || node.gone) return undefined;
  if (node.kind === "run") return node.id.slice("run:".length);
  if (node.kind !== "model" && node.kind !== "logged_model") return undefined;
  for (const { node: one } of neighbours(of, node.id, "before")) {
    const run = one.kind === "model" ? undefined : runBehind(of, one);
    if (run) return run;
  }
  return undefined;
}

export function lineageCommand(of: string | undefined, team: string | undefined): string {
  const what = shell(of ?? "model:NAME@VERSION");
  return `berth lineage ${of ? what : "model:chat@3"}${team ? ` --team ${shell(team)}` : ""}`;
}

export function reproduceCommand(run: string, team: string | undefined): string {
  return `berth reproduce ${shell(`run:${run}`)}${team ? ` --team ${shell(team)}` : ""}`;
}

export function summary(of: Lineage): string {
  const up = reach(of, of.of, "before");
  const down = reach(of, of.of, "after");
  return `Made from ${plural(up, "thing")}; ${plural(down, "thing")} made from it.`;
}
