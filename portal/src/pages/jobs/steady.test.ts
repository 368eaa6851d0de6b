import { expect, test } from "vitest";
import { changes, steady } from "./steady";

const row = (id: string, state = "a") => ({ id, state });
const id = (r: { id: string }) => r.id;
const ids = (rows: readonly { id: string }[]) => rows.map(id).join("");

test("rows keep their order and say what is new", () => {
  const order = [row("a"), row("b"), row("c")];
  const s = steady(order, [row("c", "x"), row("a"), row("b", "y")], id);
  expect(ids(s.rows)).toBe("abc");
  expect(s.rows.map((r) => r.state)).toEqual(["a", "y", "x"]);
  expect([s.added, s.gone]).toEqual([0, 0]);
});

test("new rows wait above, those that left stay, pages join below", () => {
  const order = [row("b"), row("c")];
  const s = steady(order, [row("a"), row("b"), row("d"), row("e")], id);
  expect(ids(s.rows)).toBe("bcde");
  expect([s.added, s.gone]).toEqual([1, 1]);
});

test("an empty list takes what comes, and nothing changes for nothing", () => {
  expect(steady([], [row("a")], id).rows).toHaveLength(1);
  const order = [row("a")];
  expect(steady(order, order, id).rows).toBe(order);
  expect(steady(order, [], id)).toMatchObject({ gone: 1 });
});

test("the button says what it brings", () => {
  expect(changes(0, 0)).toBeUndefined();
  expect(changes(1, 0)).toBe("Show 1 new job");
  expect(changes(0, 2)).toBe("2 no longer fit");
  expect(changes(3, 2)).toBe("Show 3 new, 2 no longer fit");
});
