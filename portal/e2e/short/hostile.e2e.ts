// Text that wants to be more than text, and pages of others that want something done.
import { readFileSync } from "node:fs";
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
  // Another port of the same host is the same site: cookies travel, so only the key of the session
  // and the check of the origin stand in the way.
  const posted = page.waitForResponse(
    (answer) => answer.url().endsWith("/stop") && answer.request().isNavigationRequest(),
  );
  await page.goto(`http://127.0.0.1:${port}/`);
  expect((await posted).status()).toBe(403);
  // With the cookie alone, from anywhere.
  const answer = await page.request.post(`${server.url}/v1/jobs/${job}/stop`, { data: {} });
  expect(answer.status()).toBe(401);
  expect((await server.api("GET", `/v1/jobs/${job}`)).body.state).toBe("running");
  attacker.close();
  server.berth(["stop", "--now", job]);
  await page.context().close();
});

test("a job whose link somebody clicks gets a cookie that is good for nothing", async () => {
  let stolen = "";
  const job = createServer((asked, answer) => {
    stolen = asked.headers.cookie ?? stolen;
    answer.setHeader("content-type", "text/html");
    // Neither its pages nor its cookies do anything to the session.
    answer.setHeader("set-cookie", "berth_session=00ee_00ee; Path=/v1");
    answer.end(`<h1>dashboard</h1>`);
  });
  await new Promise<void>((done) => job.listen(0, "127.0.0.1", done));
  const { port } = job.address() as AddressInfo;
  const page = await openPage(browser);
  await signIn(page, server.url, server.admin);
  await page.goto(`http://127.0.0.1:${port}/`);
  await page.getByRole("heading", { name: "dashboard" }).waitFor();
  expect(await page.evaluate(() => Object.keys(localStorage))).toEqual([]);
  expect(stolen).toMatch(/berth_session=\w+/);
  for (const path of ["/v1/me", "/v1/jobs", "/v1/session", "/v1/events"]) {
    const answer = await fetch(server.url + path, { headers: { cookie: stolen } });
    expect(answer.status, path).toBe(401);
    expect((await answer.json()).code).toBe("BRT0004");
  }
  // Whoever clicked stays signed in, with the cookie that the job has put before theirs.
  await page.goto(`${server.url}/queue`);
  await page.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  job.close();
  await page.context().close();
});

test("files and tables are saved, and a terminal opens, with the key of the session", async () => {
  const id = await submit(
    server,
    "name: writes\nrun: |\n  echo saved > result.txt\n  sleep 1000\n",
  );
  await jobIs(server, id, "running");
  const page = await openPage(browser);
  await signIn(page, server.url, server.admin);
  await page.goto(`${server.url}/jobs/${id}?tab=files`);
  const saves = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download" }).click();
  const saved = await saves;
  expect(saved.suggestedFilename()).toBe("result.txt");
  expect(readFileSync(await saved.path(), "utf8")).toBe("saved\n");
  const savesByRow = page.waitForEvent("download");
  await page.getByText("result.txt").click();
  expect(readFileSync(await (await savesByRow).path(), "utf8")).toBe("saved\n");
  let heard = 0;
  page.on("websocket", (socket) => {
    expect(socket.url(), "an address may be written down").not.toContain("key");
    socket.on("framereceived", () => {
      heard += 1;
    });
  });
  await page.goto(`${server.url}/jobs/${id}?tab=terminal`);
  await expect.poll(() => heard, { timeout: 30_000 }).toBeGreaterThan(0);
  server.berth(["stop", "--now", id]);
  expectNoFaults(page);
  await page.context().close();
});
