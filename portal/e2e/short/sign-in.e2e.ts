// Signing in by a provider, and letting a command line in.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectNoFaults, openBrowser, openPage, sessionHeaders } from "../support/browser";
import { type Provider, startProvider } from "../support/provider";
import { BERTH, type Server, startServer } from "../support/server";

let server: Server;
let provider: Provider;
let browser: Browser;

beforeAll(async () => {
  [provider, browser] = await Promise.all([startProvider(), openBrowser()]);
  // The provider has to know where Berth is before Berth is there.
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  await provider.tell("client", { base });
  await provider.tell("people", { noor: { groups: ["ml"] } });
  server = await startServer(
    (folder) => {
      const secret = join(folder, "oidc.secret");
      writeFileSync(secret, "a secret of the tests\n", { mode: 0o600 });
      return [
        ...["--gpus", "1xL4", "--public-url", base, "--oidc-issuer", provider.url],
        ...["--oidc-client-id", "berth", "--oidc-client-secret", secret],
        ...["--oidc-scopes", "profile,groups", "--oidc-name", "The Lab"],
        ...["--oidc-group", "ml=vision:researcher", "--oidc-create-users"],
      ];
    },
    `127.0.0.1:${port}`,
    (ready) => ready.berth(["team", "add", "vision"]),
  );
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
  provider?.stop();
});

test("the provider's people sign in with their groups as roles, and land where they were going", async () => {
  const page = await openPage(browser);
  await page.goto(`${server.url}/queue`);
  await page.getByRole("link", { name: "Continue with The Lab" }).click();
  await page.getByRole("textbox", { name: "Name" }).fill("noor");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  expect(page.url(), "nothing of the session stays in the address").toBe(`${server.url}/queue`);
  const headers = await sessionHeaders(page);
  const me = await (await page.request.get(`${server.url}/v1/me`, { headers })).json();
  expect(me.user).toBe("noor");
  expect(me.teams).toEqual([{ team: "vision", role: "researcher" }]);
  const cookies = await page.context().cookies(server.url);
  const session = cookies.find((cookie) => cookie.name === "berth_session");
  expect(session).toMatchObject({ httpOnly: true, sameSite: "Strict" });

  // The same person lets a command line in, by its code.
  const login = spawn(BERTH, ["login", "--server", server.url], {
    env: {
      ...process.env,
      HOME: server.home,
      XDG_CONFIG_HOME: server.home,
      NO_COLOR: "1",
      BERTH_TOKEN: "",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const code = await new Promise<string>((found, failed) => {
    let said = "";
    const hear = (text: Buffer) => {
      said += text;
      const seen = /\b([A-Z0-9]{4}-[A-Z0-9]{4})\b/.exec(said)?.[1];
      if (seen) found(seen);
    };
    login.stdout.on("data", hear);
    login.stderr.on("data", hear);
    login.once("exit", () => failed(new Error(`berth login ended: ${said}`)));
  });
  const ended = new Promise((done) => login.once("exit", done));
  await page.goto(`${server.url}/device?code=${code}`);
  await page.getByText(code).first().waitFor();
  await page.getByRole("button", { name: /approve|allow|sign in/i }).click();
  expect(await ended).toBe(0);

  await page.goto(`${server.url}/`);
  await page.getByRole("button", { name: /Account of/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.waitForURL((url) => url.origin !== server.url || url.pathname.includes("sign-in"));
  expect((await page.request.get(`${server.url}/v1/me`, { headers })).status()).toBe(401);
  expectNoFaults(page);
  await page.context().close();
});

function freePort(): Promise<number> {
  return new Promise((found) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => found(port));
    });
  });
}
