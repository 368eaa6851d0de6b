import { expect, test } from "vitest";
import { hasKey, keyOf, lengthOf, withKey, withKeys } from "./file";

const FILE = `name: llama
gpus: 4
time: "6h"
env:
  time: 3
  A: b
volumes:
- a
- b
run: |
  time: no key

  echo priority: high
`;

test("keys at the top are read, and no others", () => {
  expect(keyOf(FILE, "gpus")).toBe("4");
  expect(keyOf(FILE, "time")).toBe("6h");
  expect(keyOf(FILE, "env")).toBeUndefined();
  expect(keyOf(FILE, "run")).toBeUndefined();
  expect(keyOf(FILE, "priority")).toBeUndefined();
  expect(hasKey(FILE, "env")).toBe(true);
  expect(hasKey(FILE, "A")).toBe(false);
});

test("a key is set, added and taken away with all its lines", () => {
  expect(withKey(FILE, "gpus", "2")).toBe(FILE.replace("gpus: 4", "gpus: 2"));
  expect(withKey("name: a\nrun: b\n", "priority", "high")).toBe(
    "name: a\npriority: high\nrun: b\n",
  );
  expect(withKey("run: b\n", "priority", "high")).toBe("priority: high\nrun: b\n");
  expect(withKey(FILE, "env", undefined)).not.toContain("A: b");
  expect(withKey(FILE, "volumes", "[]")).toContain("volumes: []\nrun: |\n  time: no key\n\n  echo");
  expect(withKeys("run: b\n", { a: "1", run: undefined })).toBe("a: 1\n");
});

test("lengths of time are read as the job file writes them", () => {
  expect(lengthOf("90m")).toBe(5_400_000);
  expect(lengthOf("1h30m")).toBe(5_400_000);
  expect(lengthOf("3d")).toBe(259_200_000);
  expect(lengthOf("1-12:00:00")).toBe(129_600_000);
  expect(lengthOf("02:30:00")).toBe(9_000_000);
  expect(lengthOf("soon")).toBeUndefined();
  expect(lengthOf("3 parsecs")).toBeUndefined();
});
