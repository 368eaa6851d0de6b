// Models, prompts, data and lineage in the portal.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  expectNoFaults,
  openBrowser,
  openPage,
  seriousViolations,
  sessionHeaders,
  signIn,
} from "../support/browser";
import { jobIs, type Server, startServer, submit, until } from "../support/server";
import {
  logRun,
  makeExperiment,
  pushData,
  registerModel,
  registerPrompt,
} from "../support/tracking";

let server: Server;
let browser: Browser;
let kim: string;
let vera: string;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
  kim = server.person("kim", "vision", "researcher");
  vera = server.person("vera", "vision", "viewer");
  const experiment = await makeExperiment(server, "digits", kim);
  const runs: string[] = [];
  for (const [name, lr, acc, cost] of [
    ["first", "0.1", 0.8, 10],
    ["second", "0.01", 0.9, 12.5],
    ["third", "0.01", 0.85, 30],
  ] as const)
    runs.push(
      await logRun(
        server,
        experiment,
        { name, params: { lr, seed: "1" }, metrics: { acc: [acc], "berth.cost": [cost] } },
        kim,
      ),
    );
  await registerModel(server, "chat", runs, kim);
  await registerPrompt(server, "answer", ["Answer it.", "Answer it.\nBe kind."], kim);
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

async function open(token: string, path: string): Promise<Page & { faults: string[] }> {
  const page = await openPage(browser);
  await signIn(page, server.url, token);
  await page.goto(server.url + path);
  return page;
}

const modelOf = async (name: string) =>
  (await server.api("GET", `/api/2.0/mlflow/registered-models/get?name=${name}`, undefined, kim))
    .body.registered_model;
const versionOf = async (name: string, version: number) =>
  (
    await server.api(
      "GET",
      `/api/2.0/mlflow/model-versions/get?name=${name}&version=${version}`,
      undefined,
      kim,
    )
  ).body.model_version;

test("an alias is set, moved and removed, and only its removal asks first", async () => {
  const page = await open(kim, "/models");
  await page.getByRole("link", { name: "chat" }).click();
  await page.getByRole("heading", { level: 1, name: "chat" }).waitFor();
  const set = async (version: string, verb: string) => {
    await page
      .getByRole("group", { name: "Aliases" })
      .getByRole("button", { name: "Alias", exact: true })
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("combobox", { name: "Alias" }).fill("champion");
    await dialog.getByRole("combobox", { name: "Version" }).selectOption(version);
    if (verb === "Move alias") await dialog.getByText("The alias names version 2 now.").waitFor();
    await dialog.getByRole("button", { name: verb }).click();
    await dialog.waitFor({ state: "hidden" });
  };
  await set("2", "Set alias");
  expect((await modelOf("chat")).aliases).toEqual([{ alias: "champion", version: "2" }]);
  await set("3", "Move alias");
  expect((await modelOf("chat")).aliases).toEqual([{ alias: "champion", version: "3" }]);
  await page.getByRole("button", { name: "Remove the alias champion" }).click();
  const confirm = page.getByRole("alertdialog");
  await confirm.getByText("models:/chat@champion").waitFor();
  await confirm.getByRole("button", { name: "Remove alias" }).click();
  await confirm.waitFor({ state: "hidden" });
  expect((await modelOf("chat")).aliases).toEqual([]);
  expect(await seriousViolations(page)).toEqual([]);
  expectNoFaults(page);
  await page.context().close();
});

test("a dialog shows the error of the server and stays open", async () => {
  const page = await open(kim, "/models/chat?version=1");
  await page.getByRole("dialog").getByRole("button", { name: "Alias", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: /Set an alias/ });
  await dialog.getByRole("combobox", { name: "Alias" }).fill("latest");
  await dialog.getByRole("button", { name: "Set alias" }).click();
  await dialog
    .getByRole("alert")
    .getByText(/latest/)
    .waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("a stage, a description and tags are changed, and text stays text", async () => {
  const page = await open(kim, "/models/chat?version=1");
  const drawer = page.getByRole("dialog", { name: "Version 1" });
  const stage = async (of: string, archived?: RegExp) => {
    await page.goto(`${server.url}/models/chat?version=${of}`);
    await page.getByRole("button", { name: "Change stage" }).click();
    const dialog = page.getByRole("dialog", { name: /Change the stage/ });
    await dialog.getByRole("combobox", { name: "Stage" }).selectOption("Production");
    if (archived) await dialog.getByRole("checkbox", { name: archived }).waitFor();
    await dialog.getByRole("button", { name: "Change stage" }).click();
    await dialog.waitFor({ state: "hidden" });
  };
  await stage("1");
  await stage("2", /Archive version 1/);
  expect((await versionOf("chat", 1)).current_stage).toBe("Archived");
  expect((await versionOf("chat", 2)).current_stage).toBe("Production");

  await page.goto(`${server.url}/models/chat?version=1`);
  await drawer.getByRole("button", { name: "Edit description" }).click();
  const text = 'Two lines\n<img src=x onerror="window.owned=1">';
  const describe = page.getByRole("dialog", { name: "Describe version 1" });
  await describe.getByRole("textbox", { name: "Description" }).fill(text);
  await describe.getByRole("button", { name: "Save description" }).click();
  await drawer.getByText("onerror=").waitFor();
  expect((await versionOf("chat", 1)).description).toBe(text);
  await drawer.getByRole("button", { name: "Tag", exact: true }).click();
  const tag = page.getByRole("dialog", { name: /Set a tag/ });
  await tag.getByRole("textbox", { name: "Key" }).fill("verdict");
  await tag.getByRole("textbox", { name: "Value" }).fill("<b>good</b>");
  await tag.getByRole("button", { name: "Set tag" }).click();
  await drawer.getByText("<b>good</b>").waitFor();
  await drawer.getByRole("button", { name: "Remove the tag verdict" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Remove tag" }).click();
  await until("the tag is gone", async () => (await versionOf("chat", 1)).tags.length === 0);
  expect(await page.evaluate(() => (window as any).owned)).toBeUndefined();
  expectNoFaults(page);
  await page.context().close();
});

test("two versions are compared, with the costs of their runs", async () => {
  const page = await open(kim, "/models/chat");
  for (const version of ["1", "2"])
    await page
      .getByRole("row", { name: new RegExp(`^(Select )?.*\\b${version}\\b.*kim`) })
      .first()
      .waitFor();
  await page.goto(`${server.url}/models/chat?compare=1,2`);
  const table = page.getByRole("grid", { name: "Versions 1 and 2" });
  await table.getByRole("row", { name: /acc.*0\.8.*0\.9.*\+0\.1/ }).waitFor();
  await table.getByRole("row", { name: /berth\.cost.*\$10\.00.*\$12\.50/ }).waitFor();
  expect(await table.getByText("seed").count()).toBe(0);
  await page.getByText("All", { exact: true }).click();
  await table.getByText("seed").waitFor();
  await page.reload();
  await table.getByText("seed").waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  expectNoFaults(page);
  await page.context().close();
});

test("a version and a model are deleted after a question", async () => {
  await registerModel(server, "old", [], kim);
  const made = { name: "old", source: "s3://elsewhere/model" };
  for (let n = 0; n < 2; n += 1)
    await server.api("POST", "/api/2.0/mlflow/model-versions/create", made, kim);
  const page = await open(kim, "/models/old?version=1");
  await page.getByRole("button", { name: "Delete version" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete version" }).click();
  // The question hides the drawer from readers as well: only the server says that it is done.
  await expect.poll(() => versionOf("old", 1), { timeout: 30_000 }).toBeUndefined();
  await page.getByRole("button", { name: "Delete model" }).click();
  const confirm = page.getByRole("alertdialog");
  await confirm.getByText("1 version").waitFor();
  await confirm.getByRole("button", { name: "Delete model" }).click();
  await page.getByRole("heading", { level: 1, name: "Models" }).waitFor();
  await page.getByRole("link", { name: "chat" }).waitFor();
  await page.getByRole("link", { name: "old" }).waitFor({ state: "hidden" });
  expect(await modelOf("old")).toBeUndefined();
  expectNoFaults(page);
  await page.context().close();
});

test("a viewer sees the changes of a model but cannot make any, and an operator sees the audit log", async () => {
  const page = await open(vera, "/models/chat?tab=changes");
  await page.getByText("kim made version 1").waitFor();
  await page.getByText(/operators may read it/).waitFor();
  const button = page.getByRole("button", { name: "Delete model" });
  expect(await button.isDisabled()).toBe(true);
  expect(await page.getByRole("button", { name: "Tag", exact: true }).isDisabled()).toBe(true);
  const answer = await page.request.delete(
    `${server.url}/ajax-api/2.0/mlflow/registered-models/delete`,
    { headers: { ...(await sessionHeaders(page)), origin: server.url }, data: { name: "chat" } },
  );
  expect(answer.status()).toBe(403);
  await page.context().close();

  const other = await open(server.person("olu", "audio", "researcher"), "/models");
  await other.getByText("Team audio has no registered models yet").waitFor();
  await other.goto(`${server.url}/models/chat`);
  await other
    .getByRole("alert")
    .getByText(/not found/)
    .waitFor();
  await other.context().close();

  const admin = await open(server.admin, "/models/chat?tab=changes&team=vision");
  await admin.getByText("kim let champion name version 2").waitFor();
  await admin.getByText("kim changed the stage of version 2").waitFor();
  expect(await seriousViolations(admin)).toEqual([]);
  expectNoFaults(admin);
  await admin.context().close();
});

test("a lead shares a model, the other team sees it read-only, and loses it when the lead unshares it", async () => {
  const sam = server.person("sam", "speech", "researcher");
  const lea = server.person("lea", "vision", "team_lead");
  const page = await open(lea, "/models/chat");
  await page.getByRole("tab", { name: /^Shared with/ }).click();
  const panel = page.getByRole("region", { name: "Shared with" });
  await panel.getByText("Not shared").waitFor();
  await page.getByText("berth models shares chat --team vision").waitFor();
  await panel.getByRole("button", { name: "Share" }).click();
  const dialog = page.getByRole("dialog", { name: "Share chat" });
  await dialog.getByRole("combobox", { name: "Team" }).selectOption("speech");
  await dialog.getByText("berth models share chat --team vision --with speech").waitFor();
  await dialog.getByRole("button", { name: "Share" }).click();
  await dialog.waitFor({ state: "hidden" });
  await panel.getByText("team speech").waitFor();
  expect(await seriousViolations(page)).toEqual([]);

  const other = await open(sam, "/models");
  await other.getByRole("link", { name: "vision/chat" }).click();
  await other.getByRole("heading", { level: 1, name: "vision/chat" }).waitFor();
  expect(new URL(other.url()).pathname).toBe("/models/vision%2Fchat");
  await other.getByText("Its files and its lineage stay with team vision.").waitFor();
  // The address alone finds it, too.
  await other.goto(`${server.url}/models/vision%2Fchat?version=1`);
  const drawer = other.getByRole("dialog", { name: "Version 1" });
  await drawer.getByText(/is a run of team vision, which does not share its experiment/).waitFor();
  const buttons = (name: string) =>
    other.getByRole("button", { name, exact: true, includeHidden: true });
  for (const name of [
    "Delete model",
    "Delete version",
    "Change stage",
    "Edit description",
    "Tag",
    "Alias",
  ])
    expect(await buttons(name).count(), name).toBe(0);
  expect(await other.locator('a[href*="/runs/"], a[href*="/lineage?"]').count()).toBe(0);
  expect(await drawer.getByRole("link", { name: "Lineage" }).count()).toBe(0);
  expect(await seriousViolations(other)).toEqual([]);

  await panel.getByRole("button", { name: "Unshare with team speech" }).click();
  const question = page.getByRole("alertdialog", { name: "Unshare chat with team speech?" });
  await question.getByText("vision/chat").waitFor();
  await question.getByRole("button", { name: "Unshare" }).click();
  await panel.getByText("Not shared").waitFor();
  await other.goto(`${server.url}/models/vision%2Fchat`);
  await other
    .getByRole("alert")
    .getByText(/not found/)
    .waitFor();
  await other.goto(`${server.url}/models`);
  await other.getByText("Team speech has no registered models yet").waitFor();
  expectNoFaults(page);
  expectNoFaults(other);
  await page.context().close();
  await other.context().close();
});

test("prompts have a list of their own, and their texts are compared", async () => {
  const page = await open(kim, "/models");
  await page.getByRole("link", { name: "chat" }).waitFor();
  expect(await page.getByRole("link", { name: "answer" }).count()).toBe(0);
  await page.getByRole("tab", { name: "Prompts" }).click();
  await page.getByRole("link", { name: "answer" }).click();
  await page.getByRole("heading", { level: 1, name: "answer" }).waitFor();
  await page.goto(`${server.url}/models/answer?compare=1,2`);
  await page
    .getByRole("region", { name: "Text: 1 added, 0 removed" })
    .getByText("Be kind.")
    .waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  expectNoFaults(page);
  await page.context().close();
});

test("the lineage leads from a model to its job and data, and from the data to the model", async () => {
  pushData(server, "c4@v1", "vision", { "a.txt": "a" }, kim);
  pushData(server, "c4@v2", "vision", { "a.txt": "a", "b.txt": "b" }, kim);
  const job = await submit(
    server,
    "name: trains\nteam: vision\ngpus: 1\ndata: {/data: 'dvc:c4@v2'}\nrun: cat /data/b.txt\n",
    kim,
  );
  await jobIs(server, job, "done");
  const run = await until(
    "the job has a run",
    async () => (await server.api("GET", `/v1/jobs/${job}`)).body.run as string | undefined,
  );
  await registerModel(server, "traced", [run], kim);
  const question = "/v1/lineage?of=model:traced@1&team=vision";
  await until("the lineage knows the data", async () =>
    (await server.api("GET", question, undefined, kim)).body.nodes?.some(
      (node: any) => node.id === "data:c4@v2",
    ),
  );

  const page = await open(kim, "/models/traced?version=1");
  // The rail has a link of the same name before it.
  await page.locator('a[href*="/lineage?"]', { hasText: "Lineage" }).first().click();
  await page.getByRole("heading", { level: 1, name: "Lineage" }).waitFor();
  const graph = page.getByRole("group", { name: /^Lineage of/ });
  const node = (name: RegExp) => graph.getByRole("button", { name });
  await node(/^Data c4@v2/).waitFor();
  await node(/^Job /).waitFor();
  // The arrow keys follow the links, and Enter chooses a node.
  await node(/^Model traced/).focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  const details = page.getByRole("complementary", { name: /^Details of/ });
  await details.getByText(`berth reproduce run:${run} --team vision`).waitFor();
  expect(new URL(page.url()).searchParams.get("node")).toBe(`run:${run}`);
  expect(await seriousViolations(page)).toEqual([]);
  await page.reload();
  await details.getByText(`berth reproduce run:${run} --team vision`).waitFor();
  // The list has the same nodes.
  await page.getByText("List", { exact: true }).click();
  await page
    .getByRole("region", { name: "Made from" })
    .getByRole("button", { name: /Data c4@v1/ })
    .click();
  await details.getByRole("link", { name: "Open data" }).click();
  await page.getByRole("dialog", { name: "c4@v1" }).waitFor();

  await page.goto(`${server.url}/models?tab=data&open=c4@v2`);
  const drawer = page.getByRole("dialog", { name: "c4@v2" });
  await drawer.getByRole("region", { name: "Against c4@v1" }).getByText("1 file, 1 B").waitFor();
  await drawer.getByRole("region", { name: "Used by" }).getByRole("link").first().waitFor();
  await drawer.getByRole("link", { name: "Lineage" }).click();
  await node(/^Model traced/).waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("a wrong start shows an error, and the page without a start suggests some", async () => {
  const page = await open(kim, "/lineage?of=nothing");
  await page
    .getByRole("alert")
    .getByText(/BRT\d{4}/)
    .waitFor();
  await page.goto(`${server.url}/lineage`);
  await page
    .getByRole("region", { name: /^Newest models/ })
    .getByRole("button", { name: /chat@3/ })
    .click();
  await page.getByRole("group", { name: /^Lineage of Model/ }).waitFor();
  expect(new URL(page.url()).searchParams.get("of")).toBe("model:chat@3");
  expectNoFaults(page);
  await page.context().close();
});
