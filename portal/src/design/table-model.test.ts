import { expect, test } from "vitest";
import { type Column, fitting } from "./table-model";

const column = (id: string, width: number, yields?: number): Column<string> => ({
  id,
  header: id,
  width,
  cell: () => null,
  ...(yields !== undefined && { yields }),
});
const COLUMNS = [
  column("name", 100),
  column("team", 50, 2),
  column("priority", 50, 1),
  column("why", 200),
];
const ids = (width: number, chosen?: Record<string, boolean>) =>
  fitting(COLUMNS, width, chosen).map((c) => c.id);

test("columns yield in their order until the others fit", () => {
  expect(ids(400)).toEqual(["name", "team", "priority", "why"]);
  expect(ids(399)).toEqual(["name", "team", "why"]);
  expect(ids(349)).toEqual(["name", "why"]);
  expect(ids(10), "the others stay, and the table scrolls").toEqual(["name", "why"]);
});

test("a column that the user has chosen stays", () => {
  expect(ids(350, { priority: true })).toEqual(["name", "priority", "why"]);
});
