import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

interface Source {
  close: () => void;
  onopen: (() => void) | null;
  onmessage: ((m: { data: string; lastEventId: string }) => void) | null;
  onerror: (() => void) | null;
}

const listeners = new Map<string, (e: { key: string | null }) => void>();
let client: QueryClient;
let live: typeof import("./live");
let source: Source & { closed: boolean };
let stop = () => {};

beforeEach(async () => {
  vi.useFakeTimers();
  vi.resetModules();
  listeners.clear();
  const on = (name: string, cb: (e: { key: string | null }) => void) => listeners.set(name, cb);
  vi.stubGlobal("document", { addEventListener: on, removeEventListener: () => {} });
  vi.stubGlobal("window", { addEventListener: on, removeEventListener: () => {} });
  live = await import("./live");
  const { watchSession } = await import("./forget");
  client = new QueryClient();
  watchSession(client);
  client.setQueryData(["session"], { id: "s1", user: "kim" });
  client.setQueryData(["me"], { user: "kim" });
  client.setQueryData(["jobs", "pages"], ["secret-of-kim"]);
  source = { closed: false, close: () => {}, onopen: null, onmessage: null, onerror: null };
  source.close = () => {
    source.closed = true;
  };
  stop = live.start(client, { open: () => source, hidden: () => false });
  alert("kim's budget is spent");
});
afterEach(() => {
  stop();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function alert(text: string) {
  const event = { kind: "alert", seq: 7, at: "", code: "BRT0018", team: "vision", text };
  source.onmessage?.({ data: JSON.stringify(event), lastEventId: "" });
}

const texts = () => live.alerts.get().list.map((one) => one.text);

test("a tab forgets its user when another tab signs in, and asks who it is now", () => {
  expect(texts()).toEqual(["kim's budget is spent"]);
  listeners.get("storage")?.({ key: "berth.session-key" });
  expect(client.getQueryData(["session"])).toBeUndefined();
  expect(client.getQueryData(["me"])).toBeUndefined();
  expect(client.getQueryData(["jobs", "pages"])).toBeUndefined();
  expect(source.closed).toBe(true);
  expect(live.alerts.get()).toEqual({ list: [], unseen: 0 });
});

test("a tab forgets its user when all that the browser keeps is cleared", () => {
  listeners.get("storage")?.({ key: null });
  expect(client.getQueryData(["me"])).toBeUndefined();
  expect(texts()).toEqual([]);
});

test("what another tab keeps beside the key changes nothing here", () => {
  listeners.get("storage")?.({ key: "berth:kim:rail" });
  expect(client.getQueryData(["me"])).toEqual({ user: "kim" });
  expect(source.closed).toBe(false);
  expect(texts()).toHaveLength(1);
});
