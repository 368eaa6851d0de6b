import { describe, expect, it } from "vitest";
import type { Lineage, LineageDetails, LineageKind, LineageNode } from "@/api/types";
import {
  canBegin,
  graphOf,
  lineageCommand,
  nameOf,
  neighbours,
  noteOf,
  reach,
  reproduceCommand,
  runBehind,
  summary,
  targetOf,
  treeOf,
} from "./model";

const node = (id: string, details: LineageDetails = {}, more: Partial<LineageNode> = {}) => {
  const at = id.indexOf(":");
  const name = id.slice(at + 1);
  const kind = id.slice(0, at) as LineageKind;
  const words: Partial<Record<LineageKind, string>> = { run: "run ", job: "job " };
  return { id, kind, name, team: "nlp", label: (words[kind] ?? "") + name, details, ...more };
};

const CHAT: Lineage = {
  of: "model:chat@3",
  nodes: [
    node("model:chat@3", { aliases: ["champion"] }),
    node("logged_model:m-1"),
    node("run:0a1b", { status: "FINISHED" }, { label: "run first" }),
    node("job:17", { cost_micros: 12_500_000 }, { name: "train", label: "job 17 train" }),
    node("data:c4@v3", { bytes: 3_000_000 }),
    node("data:c4@v2", {}, { gone: true, label: "c4@v2 (removed)" }),
    node("code:abc", { dirty: true }),
    node("model:chat-small@1"),
    node("data:x", {}, { hidden: true, name: "", team: "", label: "" }),
  ],
  edges: [
    { from: "model:chat@3", to: "logged_model:m-1", kind: "registered_from" },
    { from: "logged_model:m-1", to: "run:0a1b", kind: "logged_by" },
    { from: "run:0a1b", to: "job:17", kind: "run_of" },
    { from: "run:0a1b", to: "data:c4@v3", kind: "read" },
    { from: "run:0a1b", to: "data:x", kind: "read" },
    { from: "run:0a1b", to: "code:abc", kind: "with_code" },
    { from: "data:c4@v3", to: "data:c4@v2", kind: "derived_from" },
    { from: "model:chat-small@1", to: "model:chat@3", kind: "registered_from" },
    { from: "job:17", to: "data:c4@v3", kind: "read" },
  ],
  cost_micros: 12_500_000,
  gpu_ms: 3_600_000,
  more: false,
};
const find = (id: string) => CHAT.nodes.find((n) => n.id === id) as LineageNode;

describe("a lineage", () => {
  it("is drawn from what was there before to what was made from it", () => {
    const { nodes, links } = graphOf(CHAT);
    expect(links[0]).toEqual({ from: "logged_model:m-1", to: "model:chat@3" });
    expect(nodes[2]).toMatchObject({
      id: "run:0a1b",
      kind: "Run",
      name: "first",
      // What its job has cost.
      note: "$12.50",
    });
  });

  it("says what lies directly beside a node, and how they are joined", () => {
    const names = (side: "before" | "after", id: string) =>
      neighbours(CHAT, id, side).map((n) => n.node.id);
    expect(names("before", "run:0a1b")).toEqual(["job:17", "data:c4@v3", "data:x", "code:abc"]);
    expect(names("after", "run:0a1b")).toEqual(["logged_model:m-1"]);
    expect(neighbours(CHAT, "model:chat@3", "before")[0]?.how).toBe("registered from it");
  });

  it("counts what is near and far on each side once", () => {
    expect(reach(CHAT, "model:chat@3", "before")).toBe(7);
    expect(reach(CHAT, "model:chat@3", "after")).toBe(1);
    expect(reach(CHAT, "data:c4@v2", "after")).toBe(6);
    expect(summary(CHAT)).toBe("Made from 7 things; 1 thing made from it.");
  });

  it("lists everything once as a tree, with what is named again marked", () => {
    const flat = (branches: ReturnType<typeof treeOf>): string[] =>
      branches.flatMap((b) => [`${b.node.id}${b.again ? " again" : ""}`, ...flat(b.branches)]);
    expect(flat(treeOf(CHAT, "model:chat@3", "before"))).toEqual([
      "logged_model:m-1",
      "run:0a1b",
      "job:17",
      "data:c4@v3 again",
      "data:c4@v3",
      "data:c4@v2",
      "data:x",
      "code:abc",
    ]);
  });

  it("ends where a record goes in a circle", () => {
    const circle: Lineage = {
      ...CHAT,
      edges: [
        { from: "model:chat@3", to: "run:0a1b", kind: "registered_from" },
        { from: "run:0a1b", to: "model:chat@3", kind: "read_model" },
      ],
    };
    expect(reach(circle, "model:chat@3", "before")).toBe(1);
    expect(treeOf(circle, "model:chat@3", "before")[0]?.branches[0]).toMatchObject({ again: true });
    expect(runBehind(circle, find("model:chat@3"))).toBe("0a1b");
  });
});

describe("a node", () => {
  it("says what matters most about it", () => {
    expect(noteOf(CHAT, find("model:chat@3"))).toBe("@champion");
    expect(noteOf(CHAT, find("data:c4@v3"))).toBe("3\u00a0MB");
    expect(noteOf(CHAT, find("data:c4@v2"))).toBe("removed");
    expect(noteOf(CHAT, find("code:abc"))).toBe("not committed");
  });

  it("is named without what its kind says already", () => {
    expect(nameOf(find("run:0a1b"))).toBe("first");
    expect(nameOf(find("job:17"))).toBe("17 train");
    expect(nameOf(find("data:c4@v2"))).toBe("c4@v2");
    expect(nameOf(find("data:x"))).toBe("of another team");
  });

  it("can be asked about, unless it is hidden or only what something was made with", () => {
    expect(CHAT.nodes.filter((n) => !canBegin(n)).map((n) => n.id)).toEqual(["code:abc", "data:x"]);
  });

  it("leads to its page, unless it is hidden or gone", () => {
    expect(targetOf(find("model:chat@3"))).toMatchObject({
      to: "/models/$model",
      params: { model: "chat" },
      search: { team: "nlp", version: "3" },
    });
    expect(targetOf(node("model:a@b@7"))).toMatchObject({ params: { model: "a@b" } });
    expect(targetOf(find("job:17"))).toEqual({ to: "/jobs/$job", params: { job: "17" } });
    expect(targetOf(find("data:c4@v3"))).toMatchObject({ search: { tab: "data", open: "c4@v3" } });
    for (const id of ["data:c4@v2", "data:x", "code:abc"])
      expect(targetOf(find(id)), id).toBeUndefined();
  });

  it("knows the run that made it", () => {
    expect(runBehind(CHAT, find("model:chat@3"))).toBe("0a1b");
    expect(runBehind(CHAT, find("run:0a1b"))).toBe("0a1b");
    expect(runBehind(CHAT, find("data:c4@v3"))).toBeUndefined();
    // It was made from another version: which run made that is another question.
    expect(runBehind(CHAT, find("model:chat-small@1"))).toBeUndefined();
  });

  it("has commands that a shell takes as they are", () => {
    expect(lineageCommand("model:my chat@3", "nlp")).toBe(
      "berth lineage 'model:my chat@3' --team nlp",
    );
    expect(reproduceCommand("0a1b", undefined)).toBe("berth reproduce run:0a1b");
  });
});
