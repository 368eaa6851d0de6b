import { describe, expect, it } from "vitest";
import { acyclic, layersOf } from "./layers";
import { type Layout, layout, NODE, step } from "./layout";
import { crossings } from "./order";
import { spread } from "./place";

const links = (text: string) =>
  text
    .split(" ")
    .filter(Boolean)
    .map((pair) => {
      const [from, to] = pair.split(">") as [string, string];
      return { from, to };
    });
const ids = (text: string) => [...new Set(links(text).flatMap((l) => [l.from, l.to]))];
const drawn = (text: string) => layout(ids(text), links(text));
const column = (of: Layout, id: string) => of.nodes.get(id)?.column;

function overlaps(of: Layout): string[] {
  const all = [...of.nodes.values()];
  return all.flatMap((a, i) =>
    all
      .slice(i + 1)
      .filter((b) => a.x === b.x && Math.abs(a.y - b.y) < NODE.height)
      .map((b) => `${a.id} and ${b.id}`),
  );
}

describe("the layout of a graph", () => {
  it("puts everything to the right of what it was made from", () => {
    const text = "data1>data2 data2>run code>run image>job job>run run>model data1>run2 run2>model";
    const found = drawn(text);
    for (const { from, to } of links(text))
      expect(column(found, from), `${from} before ${to}`).toBeLessThan(column(found, to) as number);
  });

  it("puts a node without outputs next to its use", () => {
    const found = drawn("a>b b>c c>d x>d");
    expect(column(found, "x")).toBe(column(found, "c"));
  });

  it("places nodes without overlap", () => {
    const wide = Array.from({ length: 60 }, (_, i) => `data>run${i} run${i}>model${i % 7}`);
    expect(overlaps(drawn(wide.join(" ")))).toEqual([]);
  });

  it("avoids needless crossings", () => {
    const found = drawn("a1>b1 a2>b2 a3>b3 a1>b3 c>a3 c>a1");
    const right = new Map<string, string[]>();
    for (const { from, to } of found.paths) right.set(from, [...(right.get(from) ?? []), to]);
    expect(
      crossings(
        found.columns.map((c) => [...c]),
        right,
      ),
    ).toBe(0);
  });

  it("draws a chain as a straight line", () => {
    const found = drawn("a>b b>c c>d");
    expect(new Set([...found.nodes.values()].map((n) => n.y)).size).toBe(1);
    expect(found.paths.every((p) => !p.d.includes("C"))).toBe(true);
  });

  it("leads a long link past the nodes between", () => {
    const found = drawn("a>b b>c a>c");
    const long = found.paths.find((p) => p.from === "a" && p.to === "c");
    const b = found.nodes.get("b");
    // In the column of b it has its own lane, above or below.
    const lane = Number(/H[\d.]+|C[^H]* ([\d.]+)(?:H)/.exec(long?.d ?? "")?.[1]);
    expect(lane < (b?.y ?? 0) || lane > (b?.y ?? 0) + NODE.height, long?.d).toBe(true);
  });

  it("draws a record with a cycle, and omits links to missing nodes", () => {
    const found = layout(["a", "b", "c"], links("a>b b>c c>a a>a a>gone a>b"));
    expect(found.nodes.size).toBe(3);
    expect(found.paths.map((p) => `${p.from}>${p.to}`).sort()).toEqual(["a>b", "b>c", "c>a"]);
    expect(acyclic(["a", "b"], links("a>b b>a")).links).toHaveLength(1);
  });

  it("draws an empty graph, and a single node", () => {
    expect(layout([], [])).toMatchObject({ width: 0, height: 0, paths: [] });
    expect(layout(["a"], [])).toMatchObject({ width: NODE.width, height: NODE.height });
  });

  it("has room for as many nodes as an answer holds", () => {
    const all = Array.from({ length: 1990 }, (_, i) => `data>run${i}`);
    const found = drawn([...all, ...all.map((_, i) => `run${i}>model${i % 9}`)].join(" "));
    expect(found.nodes.size).toBe(2000);
    expect(found.columns.map((c) => c.length)).toEqual([1, 1990, 9]);
  });

  it("draws the same each time, and a long chain of versions", () => {
    const chain = Array.from({ length: 3000 }, (_, i) => `v${i}>v${i + 1}`).join(" ");
    const all = ids(chain);
    expect(layersOf(all, acyclic(all, links(chain)).links).get("v3000")).toBe(3000);
    const text = "a>c b>c b>d a>d c>e d>e";
    expect(drawn(text)).toEqual(drawn(text));
  });
});

describe("a column", () => {
  it("places nodes at their preferred positions if there is room", () => {
    const item = (wish: number) => ({ wish, room: 10, weight: 1 });
    expect(spread([item(0), item(50)])).toEqual([0, 50]);
    expect(spread([item(0), item(0)])).toEqual([-5, 5]);
    expect(spread([item(30), item(0), item(100)])).toEqual([10, 20, 100]);
  });

  it("prefers the wish of the heavier node", () => {
    const found = spread([
      { wish: 0, room: 10, weight: 9 },
      { wish: 0, room: 10, weight: 1 },
    ]);
    expect(found).toEqual([-1, 9]);
  });
});

describe("an arrow key", () => {
  const found = drawn("data>run code>run run>model1 run>model2");
  it("goes along a link to the left and to the right", () => {
    expect(step(found, "model1", "left")).toBe("run");
    expect(["model1", "model2"]).toContain(step(found, "run", "right"));
    expect(["data", "code"]).toContain(step(found, "run", "left"));
    expect(step(found, "model1", "right")).toBeUndefined();
  });

  it("goes up and down a column, and stays at its ends", () => {
    const [first, second] = found.columns.at(-1) as [string, string];
    expect(step(found, first, "down")).toBe(second);
    expect(step(found, second, "up")).toBe(first);
    expect(step(found, first, "up")).toBeUndefined();
    expect(step(found, second, "first")).toBe(first);
    expect(step(found, first, "last")).toBe(second);
  });

  it("starts at the first node", () => {
    expect(step(found, "gone", "right")).toBe(found.columns[0]?.[0]);
  });
});
