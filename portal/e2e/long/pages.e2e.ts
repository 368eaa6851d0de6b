// Every page in both themes: axe finds nothing serious, nothing runs off the side of a phone.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  expectNoFaults,
  openBrowser,
  openPage,
  seriousViolations,
  signIn,
  type Theme,
} from "../support/browser";
import { pages, type Tracked } from "../support/pages";
import { jobIs, type Server, startServer, submit } from "../support/server";
import {
  logRun,
  makeExperiment,
  pushData,
  registerModel,
  registerPrompt,
} from "../support/tracking";

let server: Server;
let browser: Browser;
let job: string;
let tracked: Tracked;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
  server.person("kim", "vision", "researcher");
  job = await submit(
    server,
    'name: a-job\nteam: vision\ngpus: 6\ntime: 1h\nrun: "echo line; sleep 10000"\n',
  );
  await jobIs(server, job, "running");
  const experiment = await makeExperiment(server, "digits");
  const loss = Array.from({ length: 50 }, (_, i) => 2 / (i + 1));
  const runs = await Promise.all(
    ["0.1", "0.2", "0.3"].map((lr) =>
      logRun(server, experiment, { name: `rate-${lr}`, params: { lr }, metrics: { loss } }),
    ),
  );
  await registerModel(server, "chat", runs.slice(0, 2));
  await registerPrompt(server, "answer", ["Answer {{question}}"]);
  pushData(server, "c4@v1", "default", { "a.txt": "a" });
  tracked = { experiment, run: runs[0] as string, model: "chat" };
  await submit(server, "name: waits\nteam: vision\ngpus: 4\ntime: 1h\nrun: sleep 10000\n");
  await submit(
    server,
    `name: ${"long-".repeat(12)}name\nteam: vision\ngpus: 8\ntime: 1h\nrun: sleep 10000\n`,
  );
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

for (const theme of ["light", "dark"] as Theme[]) {
  test(`axe finds no serious violation on any page, ${theme}`, async () => {
    const page = await openPage(browser, { theme });
    await signIn(page, server.url, server.admin);
    const found: string[] = [];
    for (const { path, ready } of pages(job, tracked)) {
      await page.goto(server.url + path);
      await ready(page);
      found.push(...(await seriousViolations(page)).map((one) => `${path}: ${one}`));
    }
    expect(found).toEqual([]);
    expectNoFaults(page);
    await page.context().close();
  });
}

test("no page is wider than a phone", async () => {
  const page = await openPage(browser, { width: 390 });
  await signIn(page, server.url, server.admin);
  const wide: string[] = [];
  for (const { path, ready } of pages(job, tracked)) {
    await page.goto(server.url + path);
    await ready(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    if (width > 390) wide.push(`${path}: ${width}`);
  }
  expect(wide).toEqual([]);
  await page.context().close();
});
