import { expect, test } from "vitest";
import { documentsOf } from "./documents";

const WORLD = `
now: 2026-11-15T09:00:00Z
policy: {version: 3, grace: 5m}
queues:
  - {name: research, quota: {gpu: 8}, credits: 12, budget: {limit: 5}}
  - {name: prod, parent: research, spent: 3}
nodes: []
`;

test("the policy and the queues become documents without what nobody wishes", () => {
  expect(documentsOf(WORLD)).toBe(
    "kind: policy\ngrace: 5m\n---\nkind: queue\nname: research\nquota: { gpu: 8 }\n---\nkind: queue\nname: prod\nparent: research\n",
  );
});

test("an empty world has a policy to begin with", () => {
  expect(documentsOf("")).toBe("kind: policy\n");
});
