// Text that wants to be more than text, and pages of others that want something done.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectNoFaults, openBrowser, openPage, signIn } from "../support/browser";
import { jobIs, type Server, startServer, submit } from "../support/server";

let server: Server;
let browser: Browser;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const SCRIPT = '<img src=x onerror="window.owned=1"><script>window.owned=1</script>';

test("scripts in comments, variables, logs and job files stay text", async () => {
  const file = `comment: '${SCRIPT}'\nenv: {NOTE: '${SCRIPT}'}\nrun: |\n  echo '${SCRIPT}'\n  printf '\\033]8;;javascript:window.owned=1\\033\\\\link\\033]8;;\\033\\\\\\n'\n  sleep 1000\n`;
  const job = await submit(server, file);
  await jobIs(server, job, "running");
  const page = await openPage(browser);
  await signIn(page, server.url, server.admin);
  for (const path of ["/", "/jobs", "/queue", "/cluster", "/costs", `/jobs/${job}`]) {
    await page.goto(server.url + path);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
  }
  await page.getByRole("tab", { name: "Logs" }).click();
  await page.getByText("onerror=").first().waitFor();
  await page.getByRole("tab", { name: "Job file" }).click();
  await page.getByText("onerror=").first().waitFor();
  expect(await page.evaluate(() => (window as any).owned)).toBeUndefined();
  expect(await page.locator('a[href^="javascript"]').count()).toBe(0);
  server.berth(["stop", "--now", job]);
  expectNoFaults(page);
  await page.context().close();
});

test("a form that another origin posts does nothing", async () => {
  const job = await submit(server, "name: stays\nrun: sleep 1000\n");
  await jobIs(server, job, "running");
  const attacker = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end(`<form id=f method=post enctype=text/plain action="${server.url}/v1/jobs/${job}/stop"><input name='{"now":true,"x":"' value='"}'></form>
      <script>
        fetch('${server.url}/v1/jobs/${job}/stop', {method:'POST', credentials:'include', body:'{}', headers:{'content-type':'text/plain'}, mode:'no-cors'}).finally(() => f.submit());
      </script>`);
  });
  await new Promise<void>((done) => attacker.listen(0, "127.0.0.1", done));
  const { port } = attacker.address() as AddressInfo;
  const page = await openPage(browser);
  await signIn(page, server.url, server.admin);
  // Another port of the same host is the same site: cookies travel, so only the token of the
  // session and the check of the origin stand in the way.
  const posted = page.waitForResponse(
    (answer) => answer.url().endsWith("/stop") && answer.request().isNavigationRequest(),
  );
  await page.goto(`http://127.0.0.1:${port}/`);
  expect((await posted).status()).toBe(403);
  // With the cookie alone, from anywhere.
  const answer = await page.request.post(`${server.url}/v1/jobs/${job}/stop`, { data: {} });
  expect(answer.status()).toBe(403);
  expect((await server.api("GET", `/v1/jobs/${job}`)).body.state).toBe("running");
  attacker.close();
  server.berth(["stop", "--now", job]);
  await page.context().close();
});
