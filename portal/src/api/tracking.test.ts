import { afterEach, describe, expect, it, vi } from "vitest";
import { ApiError } from "./error";
import {
  allPages,
  artifactAddress,
  artifactPath,
  metricNumber,
  teamOf,
  tracking,
} from "./tracking";

vi.stubGlobal("location", { origin: "http://berth.example" });

function answering(...answers: Response[]) {
  const asked: Request[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    asked.push(request);
    return answers.shift() ?? Response.json({});
  });
  return asked;
}

afterEach(() => vi.restoreAllMocks());

describe("a call of MLflow's routes", () => {
  it("repeats the key of a list, and names the team", async () => {
    const asked = answering(Response.json({}));
    await tracking("GET", "metrics/get-history-bulk-interval", {
      fields: { run_ids: ["a", "b"], metric_key: "val loss", end_step: undefined },
      team: "nlp",
    });
    expect(asked[0]?.url).toBe(
      "http://berth.example/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?run_ids=a&run_ids=b&metric_key=val+loss",
    );
    expect(asked[0]?.headers.get("x-berth-team")).toBe("nlp");
  });

  it("throws the server's message, and only codes that have a page", async () => {
    const message = "Run with id=x not found";
    answering(Response.json({ error_code: "RESOURCE_DOES_NOT_EXIST", message }, { status: 404 }));
    const error = (await tracking("GET", "runs/get", { fields: { run_id: "x" } }).catch(
      (e) => e as ApiError,
    )) as ApiError;
    expect(error).toBeInstanceOf(ApiError);
    expect([error.status, error.kind, error.message, error.page]).toEqual([
      404,
      "RESOURCE_DOES_NOT_EXIST",
      message,
      undefined,
    ]);
  });

  it("reads pages up to the last one or the limit", async () => {
    const page = (from: number, next?: string) =>
      Response.json({ runs: [from, from + 1], ...(next && { next_page_token: next }) });
    const asked = answering(page(1, "two"), page(3));
    expect(await allPages("POST", "runs/search", "runs", {})).toEqual([1, 2, 3, 4]);
    expect(await asked[1]?.json()).toMatchObject({ page_token: "two" });
    answering(page(1, "two"), page(3, "three"), page(5));
    expect(await allPages("POST", "runs/search", "runs", {}, 3)).toHaveLength(4);
  });
});

describe("artifacts", () => {
  it("have the team first in their path", () => {
    const uri = "mlflow-artifacts:/nlp/3/0a1b/artifacts";
    expect(teamOf(uri)).toBe("nlp");
    expect(artifactPath(uri)).toBe("nlp/3/0a1b/artifacts");
    expect(teamOf("s3://elsewhere/3")).toBeUndefined();
  });
  it("may have any name", () => {
    expect(artifactAddress("nlp/3/0a1b/artifacts/a b#?.txt")).toBe(
      "/ajax-api/2.0/mlflow-artifacts/artifacts/nlp/3/0a1b/artifacts/a%20b%23%3F.txt",
    );
  });
});

it("reads NaN from a text", () => {
  expect(metricNumber("NaN")).toBeNaN();
  expect(metricNumber(0.5)).toBe(0.5);
});
