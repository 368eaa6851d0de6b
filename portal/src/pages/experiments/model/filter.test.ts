import { describe, expect, it } from "vitest";
import { and, errorAt, errorText, filterOf, orderBy, quoted, sortFlag } from "./filter";

describe("what is typed", () => {
  it("is a filter in MLflow's grammar", () => {
    expect(filterOf(" metrics.loss < 0.5 ")).toBe("metrics.loss < 0.5");
    expect(filterOf(undefined)).toBe("");
  });
  it("is looked for in names where it is one word", () => {
    expect(filterOf("llama-70b")).toBe("attributes.run_name ILIKE '%llama-70b%'");
    expect(filterOf("two words")).toBe("two words");
  });
});

describe("what the server refuses", () => {
  const filter = "metrics.loss < 0.5 AND parms.lr = '1'";
  it("stands at a character of the filter", () => {
    const message = `Invalid entity type 'parms'. Valid entity types are 'metrics' (at character 24 of the filter)`;
    expect(errorAt(filter, message)).toEqual({
      before: "metrics.loss < 0.5 AND ",
      at: "p",
      after: "arms.lr = '1'",
    });
  });
  it("may stand behind the end, or be said of the filter as a whole", () => {
    const message =
      "Invalid clause(s) in filter string 'a': expected a comparison at character 2, found the end";
    expect(errorAt("a", message)).toEqual({ before: "a", at: " ", after: "" });
    expect(errorAt("a", "The filter has more than 50 comparisons")).toBeUndefined();
  });
  it("is found although the filter says the same words", () => {
    const odd = "tags.a = 'at character 3' OR";
    const message = `Invalid clause(s) in filter string '${odd}': expected AND or the end of the filter at character 27, found 'OR'`;
    expect(errorAt(odd, message)?.at).toBe("O");
    expect(errorText(message)).toBe(
      "Expected AND or the end of the filter at character 27, found 'OR'",
    );
  });
  it("counts characters, not bytes", () => {
    expect(errorAt("ü💥x", "wrong (at character 3 of the filter)")?.at).toBe("x");
  });
});

describe("an order", () => {
  it("has odd keys in backticks", () => {
    expect(orderBy("-metrics.val loss")).toEqual(["metrics.`val loss` DESC"]);
    expect(orderBy("params.a.b")).toEqual(["params.a.b ASC"]);
    expect(quoted("metrics.system/gpu-0")).toBe("metrics.`system/gpu-0`");
  });
  it("is the server's only where the server knows the value", () => {
    expect(orderBy("start")).toEqual(["start_time ASC"]);
    expect(orderBy("duration")).toBeUndefined();
    expect(sortFlag("-metrics.val loss")).toBe("-metrics.`val loss`");
    expect(sortFlag("-duration")).toBeUndefined();
  });
});

it("another comparison is joined by AND", () => {
  expect(and("", "start_time > 1")).toBe("start_time > 1");
  expect(and("status = 'FAILED'", "start_time > 1")).toBe("status = 'FAILED' AND start_time > 1");
});
