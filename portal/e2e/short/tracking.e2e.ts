// Experiments and runs in the portal. The tests log runs as a script does.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  expectNoFaults,
  openBrowser,
  openPage,
  seriousViolations,
  signIn,
} from "../support/browser";
import { jobIs, type Server, startServer, submit, until } from "../support/server";
import {
  finishRun,
  logMetric,
  logRun,
  makeExperiment,
  pushData,
  putArtifact,
} from "../support/tracking";

let server: Server;
let browser: Browser;
let kim: string;
let vera: string;
let experiment: string;
const runs: Record<string, string> = {};

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
  kim = server.person("kim", "vision", "researcher");
  vera = server.person("vera", "vision", "viewer");
  experiment = await makeExperiment(server, "digits", kim);
  const falling = (to: number) => Array.from({ length: 50 }, (_, i) => to + 2 / (i + 1));
  for (const [name, lr, loss] of [
    ["slow", "0.001", 0.9],
    ["good", "0.01", 0.2],
    ["wild", "0.1", 1.7],
  ] as const)
    runs[name] = await logRun(
      server,
      experiment,
      {
        name,
        params: { lr, seed: "1" },
        tags: { task: "vision" },
        metrics: { loss: falling(loss), "berth.cost": [loss * 10] },
      },
      kim,
    );
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const runOf = async (id: string) =>
  (await server.api("GET", `/api/2.0/mlflow/runs/get?run_id=${id}`)).body.run;

/** The names of the runs in the order of the table. */
const names = (page: any): Promise<string[]> =>
  page.getByRole("grid", { name: "Runs" }).getByRole("link").allTextContents();

test("a user finds runs by experiment, filter and order, and the address keeps them", async () => {
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.getByRole("link", { name: "Experiments" }).click();
  await page.getByRole("link", { name: "digits" }).click();
  await page.getByRole("heading", { level: 1, name: "digits" }).waitFor();
  await page.getByRole("link", { name: "wild" }).waitFor();
  await page.getByRole("button", { name: "loss", exact: true }).click();
  await until("sorted", async () => (await names(page)).join() === "good,slow,wild");
  const filter = page.getByRole("searchbox", { name: "Filter runs" });
  await filter.fill("metrics.loss < 1 AND params.lr != '0.001'");
  await filter.press("Enter");
  await until("filtered", async () => (await names(page)).join() === "good");
  await page.reload();
  await until("the same again", async () => (await names(page)).join() === "good");
  expect(await filter.inputValue()).toBe("metrics.loss < 1 AND params.lr != '0.001'");
  // A single word searches the names.
  await filter.fill("wil");
  await filter.press("Enter");
  await until("found by name", async () => (await names(page)).join() === "wild");
  expectNoFaults(page);
  await page.context().close();
});

test("an error in a filter is marked at its place", async () => {
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/experiments/${experiment}`);
  const filter = page.getByRole("searchbox", { name: "Filter runs" });
  await page.getByRole("link", { name: "wild" }).waitFor();
  await filter.fill("metrics.loss < 1 OR params.lr = '1'");
  await filter.press("Enter");
  const error = page.getByTestId("filter-error");
  await error.waitFor();
  expect(await error.locator("mark").textContent()).toBe("O");
  await page
    .getByRole("alert")
    .getByText(/expected AND/i)
    .waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await page.getByRole("button", { name: "Clear the filter" }).click();
  await page.getByRole("link", { name: "wild" }).waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("selected runs are compared and drawn, and a range of a param limits the runs", async () => {
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/experiments/${experiment}`);
  for (const name of ["good", "wild"])
    await page
      .getByRole("row", { name: new RegExp(name) })
      .getByRole("checkbox")
      .check();
  await page.getByRole("button", { name: "Compare" }).click();
  const table = page.getByRole("group", { name: "Comparison of the runs" });
  await table.getByRole("row", { name: /lr 0\.01 0\.1|lr 0\.1 0\.01/ }).waitFor();
  // Compare omits equal values until the user asks for them.
  expect(await table.getByRole("rowheader", { name: "seed" }).count()).toBe(0);
  await page.getByText("Show equal values").click();
  await table.getByRole("rowheader", { name: "seed" }).waitFor();

  await page.getByRole("tab", { name: "Curves" }).click();
  const chart = page.getByRole("group", { name: /^loss of 2 runs/ });
  await chart.waitFor();
  await chart.focus();
  await page.keyboard.press("End");
  await chart.getByText(/(good|wild): Step 49, loss/).waitFor({ state: "attached" });
  await page.getByText("Cost", { exact: true }).click();
  await chart.getByRole("columnheader", { name: /estimated/ }).waitFor({ state: "attached" });
  expect(await seriousViolations(page)).toEqual([]);

  await page.goto(`${server.url}/experiments/${experiment}?view=parallel`);
  await page.getByRole("button", { name: /^lr/ }).click();
  await page.getByRole("textbox", { name: "From" }).fill("0.005");
  await page.getByRole("textbox", { name: "To" }).fill("0.05");
  await page.getByRole("button", { name: "Keep the range" }).click();
  await page.getByText("1 of 3 runs are within the ranges").waitFor();
  expect(await seriousViolations(page)).toEqual([]);

  await page.getByRole("tab", { name: "Scatter" }).click();
  const scatter = page.getByRole("group", { name: /^loss against Cost, 3 runs/ });
  await scatter.focus();
  await page.keyboard.press("Home");
  await scatter.getByText(/^good: Cost \$2/).waitFor({ state: "attached" });
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "good" }).waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("the page of a run updates live, and renames, tags, deletes and restores the run", async () => {
  const open = await logRun(
    server,
    experiment,
    { name: "goes-on", params: { lr: "0.5" }, metrics: { loss: [3] }, finish: false },
    kim,
  );
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/runs/${open}`);
  const status = page.getByTestId("run-status");
  await status.filter({ hasText: "Running" }).waitFor();
  await logMetric(server, open, "loss", 0.125, 1);
  await page.getByText("0.125").waitFor();
  await finishRun(server, open, kim);
  await status.filter({ hasText: "Finished" }).waitFor();

  const act = async (name: string) => {
    await page.getByRole("button", { name: "Actions", exact: true }).click();
    await page.getByRole("menuitem", { name }).click();
  };
  await act("Rename");
  await page.getByRole("textbox", { name: "Name" }).fill("renamed");
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByRole("heading", { level: 1, name: "renamed" }).waitFor();
  await act("Set a tag");
  await page.getByRole("textbox", { name: "Key" }).fill("verdict");
  await page.getByRole("textbox", { name: "Value" }).fill("keep it");
  await page.getByRole("dialog").getByRole("button", { name: "Set the tag" }).click();
  await page.getByText("keep it").waitFor();
  expect((await runOf(open)).data.tags).toContainEqual({ key: "verdict", value: "keep it" });
  await page.getByRole("button", { name: "Remove verdict" }).click();
  await until(
    "the tag is gone",
    async () => !(await runOf(open)).data.tags.some((tag: any) => tag.key === "verdict"),
  );
  await act("Delete");
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete the run" }).click();
  await page.getByText("This run is deleted.").waitFor();
  expect((await runOf(open)).info.lifecycle_stage).toBe("deleted");
  await act("Restore");
  await page.getByText("This run is deleted.").waitFor({ state: "hidden" });
  expect((await runOf(open)).info).toMatchObject({
    lifecycle_stage: "active",
    run_name: "renamed",
  });
  expect(await seriousViolations(page)).toEqual([]);
  expectNoFaults(page);
  await page.context().close();
});

test("a user browses, previews and downloads artifacts", async () => {
  const run = runs.good as string;
  await putArtifact(server, run, "report/metrics.json", '{"loss":0.2}');
  const hostile = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>';
  await putArtifact(server, run, "report/plot.svg", hostile);
  await putArtifact(server, run, "report/<b>notes.txt", "plain <b>text</b>");
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/runs/${run}?tab=artifacts`);
  await page.getByRole("link", { name: "report" }).click();
  await page.getByRole("link", { name: "metrics.json" }).click();
  await page.getByRole("dialog").getByText('"loss": 0.2').waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("dialog").getByRole("button", { name: "Download", exact: true }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("metrics.json");
  await page.getByRole("button", { name: "Next" }).click();
  await page.getByRole("img", { name: "report/plot.svg" }).waitFor();
  // A name that looks like markup is text.
  await page.goto(`${server.url}/runs/${run}?tab=artifacts&path=report`);
  await page.getByRole("link", { name: "<b>notes.txt" }).click();
  await page.getByRole("dialog").getByText("plain <b>text</b>").waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("a job leads to its run, which says what has changed and submits the job again", async () => {
  pushData(server, "books@v1", "vision", { "a.txt": "alpha" }, kim);
  const file =
    "name: reads\nteam: vision\ngpus: 1\ndata: {/data: 'dvc:books'}\nrun: cat /data/a.txt\n";
  const job = await submit(server, file, kim);
  await jobIs(server, job, "done");
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/jobs/${job}`);
  await page.locator("main header").getByRole("link", { name: "Run", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "reads" }).waitFor();
  await page.getByRole("button", { name: "Reproduce" }).click();
  const drawer = page.getByRole("dialog", { name: "Reproduce" });
  await drawer.getByText("The job can run again, but its result may differ").waitFor();
  await drawer
    .getByRole("group", { name: /^Job file/ })
    .getByText("dvc:books@v1#")
    .waitFor();
  await drawer.getByText(/^berth reproduce run:\w+ --team vision --submit$/).waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  const asked = page.url();
  await drawer.getByRole("button", { name: "Submit again" }).click();
  await page.waitForURL(/\/jobs\/\d+$/);
  const again = page.url().split("/").at(-1) as string;
  expect(again).not.toBe(job);
  await jobIs(server, again, "done");
  expect((await server.api("GET", `/v1/runs/job:${again}/recipe`)).body.file).toBe(
    (await server.api("GET", `/v1/runs/job:${job}/recipe`)).body.file,
  );

  // With other data under the same name the job is submitted only after a question.
  server.berth(["data", "rm", "books@v1", "--team", "vision", "-y"]);
  pushData(server, "books@v1", "vision", { "a.txt": "beta" }, kim);
  await page.goto(asked);
  await drawer.getByText("The run cannot be repeated as it was").waitFor();
  await drawer
    .getByRole("region", { name: "Prevents an exact repetition" })
    .getByText("data books@v1")
    .waitFor();
  expect(await drawer.getByRole("button", { name: "Submit again" }).count()).toBe(0);
  await drawer.getByRole("button", { name: "Submit anyway" }).click();
  expect(await seriousViolations(page)).toEqual([]);
  await page.getByRole("alertdialog").getByRole("button", { name: "Submit the job" }).click();
  await page.waitForURL(/\/jobs\/\d+$/);
  const other = page.url().split("/").at(-1) as string;
  await jobIs(server, other, "done");
  expect(server.berth(["logs", other])).toContain("beta");
  expectNoFaults(page);
  await page.context().close();

  const viewer = await openPage(browser);
  await signIn(viewer, server.url, vera);
  await viewer.goto(asked);
  const submits = viewer.getByRole("button", { name: "Submit anyway" });
  await submits.waitFor();
  expect(await submits.getAttribute("aria-disabled")).toBe("true");
  await viewer.context().close();
});

test("a run without a job says that it cannot be repeated", async () => {
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/runs/${runs.good}?reproduce=true`);
  const drawer = page.getByRole("dialog", { name: "Reproduce" });
  await drawer
    .getByRole("alert")
    .getByText(/has no job/)
    .waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("a viewer cannot change a run, and another team does not see it", async () => {
  const page = await openPage(browser);
  await signIn(page, server.url, vera);
  await page.goto(`${server.url}/runs/${runs.good}`);
  await page.getByRole("button", { name: "Actions", exact: true }).click();
  for (const name of [/^Rename/, /^Set a tag/, /^Delete/])
    expect(await page.getByRole("menuitem", { name }).isDisabled(), String(name)).toBe(true);
  await page.context().close();

  const other = await openPage(browser);
  await signIn(other, server.url, server.person("olu", "audio", "researcher"));
  await other.goto(`${server.url}/runs/${runs.good}`);
  await other
    .getByRole("alert")
    .getByText(/not found/)
    .waitFor();
  await other.goto(`${server.url}/experiments`);
  await other.getByRole("heading", { level: 1, name: "Experiments" }).waitFor();
  await other.getByRole("link", { name: "Default" }).waitFor();
  expect(await other.getByText("digits").count()).toBe(0);
  // The page of a team without runs shows the first command.
  await other.getByRole("link", { name: "Default" }).click();
  await other
    .getByText(/MLFLOW_TRACKING_URI=/)
    .first()
    .waitFor();
  expectNoFaults(other);
  await other.context().close();
});
