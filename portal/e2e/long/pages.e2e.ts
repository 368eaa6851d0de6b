// Every page in both themes, on a desktop and on a phone: axe finds nothing serious, and no page runs
// off the side.
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
import { jobIs, type Server, startServer, submit, until } from "../support/server";
import { tellStory } from "../support/story";
import { pushData } from "../support/tracking";

let server: Server;
let browser: Browser;
let job: string;
let tracked: Tracked;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
  server.person("kim", "vision", "researcher");
  pushData(server, "c4@v1", "default", { "a.txt": "a" });
  pushData(server, "c4@v2", "default", { "a.txt": "a", "b.txt": "b" });
  const trains = await submit(
    server,
    "name: trains\nexperiment: llama-sft\ngpus: 1\ndata: {/data: 'dvc:c4@v2'}\nrun: cat /data/b.txt\n",
  );
  await jobIs(server, trains, "done");
  const run = await until(
    "the job has a run",
    async () => (await server.api("GET", `/v1/jobs/${trains}`)).body.run as string | undefined,
  );
  tracked = await tellStory(server, run);
  await until("the lineage leads to the data", async () =>
    (await server.api("GET", `/v1/lineage?of=model:${tracked.model}@2`)).body.nodes?.some(
      (node: { id: string }) => node.id === "data:c4@v2",
    ),
  );
  job = await submit(
    server,
    'name: a-job\nteam: vision\ngpus: 6\ntime: 1h\nrun: "echo line; sleep 10000"\n',
  );
  await jobIs(server, job, "running");
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

for (const theme of ["light", "dark"] as Theme[])
  for (const width of [1280, 390])
    test(`axe finds no serious violation on any page, and no page is too wide: ${theme}, ${width} px`, async () => {
      const page = await openPage(browser, { theme, width });
      await signIn(page, server.url, server.admin);
      const found: string[] = [];
      for (const { path, ready } of pages(job, tracked)) {
        await page.goto(server.url + path);
        await ready(page);
        found.push(...(await seriousViolations(page)).map((one) => `${path}: ${one}`));
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        if (wide > width) found.push(`${path}: ${wide} px wide`);
      }
      expect(found).toEqual([]);
      expectNoFaults(page);
      await page.context().close();
    }, 900_000);

test("the pages of what is tracked show it", async () => {
  const page = await openPage(browser, { width: 1280 });
  await signIn(page, server.url, server.admin);
  const shown: [name: string, words: RegExp][] = [
    ["experiments", /llama-sft/],
    ["experiment", /amber-keel/],
    ["parallel", /learning_rate/],
    ["curves", /accuracy/],
    ["compare", /swift-mast/],
    ["run", /learning_rate/],
    ["run-metrics", /val_loss/],
    ["run-artifacts", /metrics\.json/],
    ["run-artifact", /"accuracy": 0\.85/],
    ["run-reproduce", /dvc:c4@v2#/],
    ["models", /champion/],
    ["model", /champion/],
    ["model-changes", /version 2/],
    ["lineage", /c4@v2/],
    ["lineage-list", /c4@v1/],
    ["data-version", /b\.txt|1 file/],
  ];
  const all = pages(job, tracked);
  for (const [name, words] of shown) {
    const stop = all.find((one) => one.name === name);
    await page.goto(server.url + (stop?.path ?? ""));
    await page.locator("body", { hasText: words }).waitFor();
  }
  expectNoFaults(page);
  await page.context().close();
}, 600_000);
