import { afterEach, beforeEach, expect, test, vi } from "vitest";

class Kept {
  all = new Map<string, string>();
  getItem = (at: string) => this.all.get(at) ?? null;
  setItem = (at: string, text: string) => void this.all.set(at, text);
  removeItem = (at: string) => void this.all.delete(at);
}

let local: Kept;
let tab: Kept;
let key: typeof import("./key");

beforeEach(async () => {
  vi.resetModules();
  local = new Kept();
  tab = new Kept();
  vi.stubGlobal("localStorage", local);
  vi.stubGlobal("sessionStorage", tab);
  key = await import("./key");
});
afterEach(() => vi.unstubAllGlobals());

/** Where a page ends up that was opened at an address. */
function opened(address: string): string | undefined {
  const at = new URL(address, "http://berth.example:7117") as unknown as Location;
  let to: string | undefined;
  const past = {
    replaceState: (_: unknown, __: string, url: string) => {
      to = url;
    },
  };
  key.takeSessionKey(at, past as unknown as History);
  return to;
}

test("a sign-in that began in this tab leaves its key here, and nothing in the address", () => {
  const lands = key.landingFor("/jobs?state=running#top");
  expect(lands).toMatch(/^\/sign-in\?mark=[0-9a-f]{32}$/);
  expect(key.landingFor("/jobs?state=running#top")).toBe(lands);
  expect(opened(`${lands}#session-key=00ff_aa11`)).toBe("/jobs?state=running#top");
  expect(key.sessionKey()).toBe("00ff_aa11");
  // Once.
  key.keepSessionKey(undefined);
  expect(opened(`${lands}#session-key=00ff_bb22`)).toBe("/");
  expect(key.sessionKey()).toBeUndefined();
});

test("a link of somebody else signs nobody in as that somebody", () => {
  key.keepSessionKey("00ff_mine");
  const evil = "#session-key=00ee_00ee";
  expect(opened(`/sign-in?mark=00${evil}`)).toBe("/");
  const lands = key.landingFor("//evil.example/");
  expect(opened(`/sign-in${evil}`)).toBe("/");
  expect(opened(`/jobs?mark=${lands.split("=")[1]}${evil}`)).toBe("/");
  expect(key.sessionKey()).toBe("00ff_mine");
  const again = key.landingFor("//evil.example/");
  expect(opened(`${again}${evil}`)).toBe("/");
  expect(key.sessionKey()).toBe("00ee_00ee");
});

test("an address without a key is left as it is", () => {
  expect(opened("/jobs/17?tab=logs#L40")).toBeUndefined();
  expect(opened("/jobs#session-key=<script>")).toBeUndefined();
});

test("all tabs have the key, and a browser that keeps nothing has it in one", () => {
  key.keepSessionKey("00ff_aa11");
  expect([...local.all.values()]).toEqual(["00ff_aa11"]);
  local.setItem([...local.all.keys()][0] as string, "00ff_other-tab");
  expect(key.sessionKey()).toBe("00ff_other-tab");
  const refuse = () => {
    throw new DOMException("denied");
  };
  vi.stubGlobal("localStorage", { getItem: refuse, setItem: refuse, removeItem: refuse });
  key.keepSessionKey("00ff_here");
  expect(key.sessionKey()).toBe("00ff_here");
  key.keepSessionKey(undefined);
  expect(key.sessionKey()).toBeUndefined();
});
