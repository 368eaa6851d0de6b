import { expect, test } from "vitest";
import { timeOf } from "./search";

const NOW = Date.parse("2026-01-15T10:30:00Z");

test("periods are those of the books, in UTC", () => {
  expect(timeOf("month", NOW)).toEqual({ from: "2026-01-01T00:00:00.000Z" });
  expect(timeOf("last-month", NOW)).toEqual({
    from: "2025-12-01T00:00:00.000Z",
    to: "2026-01-01T00:00:00.000Z",
  });
  expect(timeOf("7d", NOW)).toEqual({ from: "2026-01-09T00:00:00.000Z" });
});
