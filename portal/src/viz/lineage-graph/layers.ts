// Assigns nodes to columns, with each output to the right of its inputs.

export interface Link {
  from: string;
  to: string;
}

/** The links of an acyclic graph, and which of them were reversed. */
export interface Acyclic {
  links: readonly (Link & { turned: boolean })[];
}

/**
 * Turns around what closes a circle. A record of what was made from what has none; one that has been
 * tampered with must still be drawn. Links to nodes that are not there, doubles and loops are left out.
 */
export function acyclic(ids: readonly string[], links: readonly Link[]): Acyclic {
  const known = new Set(ids);
  const seen = new Set<string>();
  const out = new Map<string, string[]>();
  for (const { from, to } of links) {
    if (from === to || !known.has(from) || !known.has(to)) continue;
    const key = `${from}\n${to}`;
    if (seen.has(key) || seen.has(`${to}\n${from}`)) continue;
    seen.add(key);
    const list = out.get(from);
    if (list) list.push(to);
    else out.set(from, [to]);
  }
  const state = new Map<string, "open" | "done">();
  const found: (Link & { turned: boolean })[] = [];
  for (const start of ids) {
    if (state.has(start)) continue;
    // An explicit stack instead of recursion, because a chain of versions may be long.
    const path: { id: string; next: number }[] = [{ id: start, next: 0 }];
    state.set(start, "open");
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const to = out.get(top.id)?.[top.next];
      top.next += 1;
      if (to === undefined) {
        state.set(top.id, "done");
        path.pop();
      } else if (state.get(to) === "open") {
        found.push({ from: to, to: top.id, turned: true });
      } else {
        found.push({ from: top.id, to, turned: false });
        if (!state.has(to)) {
          state.set(to, "open");
          path.push({ id: to, next: 0 });
        }
      }
    }
  }
  return { links: found };
}

/** The column of each node, from 0. Keeps links as short as possible without more columns. */
export function layersOf(ids: readonly string[], links: readonly Link[]): Map<string, number> {
  const before = new Map<string, string[]>(ids.map((id) => [id, []]));
  const after = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const { from, to } of links) {
    after.get(from)?.push(to);
    before.get(to)?.push(from);
  }
  const order = sortedByLinks(ids, before, after);
  const layer = new Map<string, number>();
  for (const id of order)
    layer.set(id, Math.max(0, ...(before.get(id) ?? []).map((b) => (layer.get(b) ?? 0) + 1)));
  // Moves nodes with more links on the right next to them, such as data next to the run that reads it.
  for (const id of [...order].reverse()) {
    const right = after.get(id) ?? [];
    if (right.length === 0 || right.length <= (before.get(id) ?? []).length) continue;
    layer.set(id, Math.min(...right.map((r) => layer.get(r) ?? 0)) - 1);
  }
  const least = Math.min(0, ...layer.values());
  for (const [id, at] of layer) layer.set(id, at - least);
  return layer;
}

function sortedByLinks(
  ids: readonly string[],
  before: ReadonlyMap<string, readonly string[]>,
  after: ReadonlyMap<string, readonly string[]>,
): string[] {
  const open = new Map(ids.map((id) => [id, before.get(id)?.length ?? 0]));
  const ready = ids.filter((id) => open.get(id) === 0);
  const out: string[] = [];
  for (let id = ready.shift(); id !== undefined; id = ready.shift()) {
    out.push(id);
    for (const to of after.get(id) ?? []) {
      const left = (open.get(to) ?? 0) - 1;
      open.set(to, left);
      if (left === 0) ready.push(to);
    }
  }
  return out;
}
