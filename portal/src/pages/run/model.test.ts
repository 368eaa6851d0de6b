import { describe, expect, it } from "vitest";
import { curlOf, datasetOf, pretty, previewOf, tagsInOrder, textOfBytes } from "./model";

describe("a data set", () => {
  const input = (source_type: string, source: string) =>
    datasetOf({
      tags: [{ key: "mlflow.data.context", value: "data" }],
      dataset: { name: "c4@v3", digest: "ab12", source_type, source },
    });
  it("that Berth keeps leads to its lineage", () => {
    const found = input("berth", '{"path":"/data","data":"dvc:c4@v3"}');
    expect(found).toMatchObject({ lineage: "data:c4@v3", source: "dvc:c4@v3", context: "data" });
  });
  it("of a script is shown by its address, whatever its source is", () => {
    expect(input("http", '{"uri":"https://x/y.csv"}')).toMatchObject({
      lineage: undefined,
      source: "https://x/y.csv",
    });
    expect(input("local", "no json").source).toBe("no json");
    expect(input("local", "").source).toBeUndefined();
  });
});

describe("a preview", () => {
  it("is chosen by the end of the name; what is unknown is tried as text", () => {
    expect(
      ["a/plot.PNG", "metrics.json", "MLmodel", "model.pkl", "train.log", "x.safetensors"].map(
        previewOf,
      ),
    ).toEqual(["image", "json", "text", "none", "text", "none"]);
  });
  it("of text leaves out half a character at a cut, and refuses bytes", () => {
    const bytes = new TextEncoder().encode("aü");
    expect(textOfBytes(bytes.subarray(0, 2), false)).toBe("a");
    expect(textOfBytes(bytes, true)).toBe("aü");
    expect(textOfBytes(new Uint8Array([0x80, 0x03, 0x00]), true)).toBeUndefined();
    expect(textOfBytes(new Uint8Array([0xff, 0xfe, 0x41]), true)).toBeUndefined();
  });
  it("of JSON is indented, and what is none stays as it is", () => {
    expect(pretty('{"a":1}')).toBe('{\n  "a": 1\n}');
    expect(pretty("{")).toBe("{");
  });
});

it("tags of the user stand before those of Berth and MLflow", () => {
  const tags = { "mlflow.user": "kim", zeta: "1", "berth.job": "17", alpha: "2" };
  expect(tagsInOrder(tags).map(([key]) => key)).toEqual([
    "alpha",
    "zeta",
    "berth.job",
    "mlflow.user",
  ]);
});

it("the command lists a folder and saves a file", () => {
  expect(curlOf("nlp/3/0a/artifacts", { path: "a b" })).toContain(
    '"$BERTH_URL/api/2.0/mlflow-artifacts/artifacts?path=nlp/3/0a/artifacts/a%20b"',
  );
  const save = curlOf("nlp/3/0a/artifacts", { file: "plots/my plot.png" });
  expect(save).toContain("-o 'my plot.png'");
  expect(save).toContain("/artifacts/plots/my%20plot.png");
});
