import { expect, test } from "vitest";
import type { Gpu } from "@/api/types";
import { matching, modelsOf, priceOf, supplyOf } from "./models";

const gpu = (model: string, gb: number, price: number, free = 1000, healthy = true) =>
  ({
    model,
    memory_bytes: gb * 1e9,
    price_micros_per_hour: price * 1e6,
    free_milli: free,
    healthy,
  }) as Gpu;

const models = modelsOf([
  gpu("H100-80GB", 80, 3),
  gpu("H100-80GB", 80, 2.5, 0),
  gpu("H100-80GB", 80, 3, 1000, false),
  gpu("H100-94GB", 94, 4),
  gpu("L4-24GB", 24, 0.7, 500),
]);

test("models are counted with what is free and what the cheapest costs", () => {
  expect(models[0]).toMatchObject({
    model: "H100-80GB",
    total: 3,
    free: 1,
    price_micros_per_hour: 2.5e6,
  });
  expect(models.find((m) => m.model === "L4-24GB")?.free).toBe(0);
});

test("a name without memory stands for all with that name, and 80GB+ for all with as much", () => {
  expect(matching("H100", models).map((m) => m.model)).toEqual(["H100-80GB", "H100-94GB"]);
  expect(matching("h100-80gb", models)).toHaveLength(1);
  expect(matching("80GB+", models)).toHaveLength(2);
  expect(matching("A100", models)).toEqual([]);
});

test("alternatives add up, and a model counts once", () => {
  expect(supplyOf(["H100", "H100-80GB"], models)).toMatchObject({
    total: 4,
    free: 2,
    least: 2.5e6,
    most: 4e6,
  });
  expect(supplyOf([], models).total).toBe(5);
});

test("the price of what a job asks for is that of the cheapest it takes", () => {
  expect(priceOf("4 x H100:8", 32_000, models)).toBe(80e6);
  expect(priceOf("L4/shared", 250, models)).toBe(0.175e6);
  expect(priceOf("2", 2000, models)).toBe(1.4e6);
  expect(priceOf("A100:8", 8000, models)).toBeUndefined();
});
