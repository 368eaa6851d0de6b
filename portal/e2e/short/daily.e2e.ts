// What people do all day, from sign-in to a drained node.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectNoFaults, openBrowser, openPage, sessionHeaders, signIn } from "../support/browser";
import { jobIs, type Server, startServer, submit, until } from "../support/server";

let server: Server;
let browser: Browser;
let kim: string;

beforeAll(async () => {
  [server, browser] = await Promise.all([startServer(), openBrowser()]);
  kim = server.person("kim", "vision", "researcher");
});

afterAll(async () => {
  await browser?.close();
  await server?.stop();
});

const stateOf = (page: any) => page.locator("[data-testid=job-state]");

test("a token signs in, a wrong one is refused with its code, and signing out ends the session", async () => {
  const page = await openPage(browser);
  await page.goto(`${server.url}/jobs`);
  await page.getByRole("textbox", { name: "Token" }).fill("berth_wrong");
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page
    .getByRole("alert")
    .filter({ hasText: /BRT\d{4}/ })
    .waitFor();
  await page.getByRole("textbox", { name: "Token" }).fill(kim);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  // Whoever wanted to see the jobs gets there.
  await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
  const [cookie] = (await page.context().cookies()).filter((one) => one.name === "berth_session");
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
  const key = await sessionHeaders(page);
  expect((await page.request.get(`${server.url}/v1/me`, { headers: key })).status()).toBe(200);
  // The next tab is signed in, too.
  const tab = await page.context().newPage();
  await tab.goto(`${server.url}/queue`);
  await tab.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  await tab.close();
  await page.getByRole("button", { name: /Account of/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("textbox", { name: "Token" }).waitFor();
  const answer = await page.request.get(`${server.url}/v1/me`, { headers: key });
  expect(answer.status()).toBe(401);
  expect(await sessionHeaders(page)).toEqual({});
  expectNoFaults(page);
  await page.context().close();
});

test("a job that is submitted from the form runs and ends live before the eyes", async () => {
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.getByRole("link", { name: "New job" }).first().click();
  await page.getByRole("textbox", { name: "Name" }).fill("from-the-form");
  await page
    .getByRole("textbox", { name: "Command" })
    .fill('echo "hello <b>from</b> the form"; sleep 3; echo "and done"');
  await page.getByRole("spinbutton", { name: "GPUs" }).fill("1");
  await page.getByRole("region", { name: "Plan" }).getByText(/\$\d/).first().waitFor();
  await page.getByRole("button", { name: "Submit job" }).click();
  await page.getByRole("heading", { level: 1, name: "from-the-form" }).waitFor();
  await stateOf(page)
    .filter({ hasText: /running/i })
    .waitFor();
  await page.getByRole("tab", { name: "Logs" }).click();
  await page.getByText("hello <b>from</b> the form").waitFor();
  await stateOf(page).filter({ hasText: /done/i }).waitFor();
  await page.getByText("and done", { exact: false }).first().waitFor();
  // Its clone has all of its file in the form.
  await page.getByRole("button", { name: "Clone job" }).click();
  await page.getByRole("heading", { level: 1, name: "New job" }).waitFor();
  const name = page.getByRole("textbox", { name: "Name" });
  await name.waitFor();
  expect(await name.inputValue()).toBe("from-the-form");
  expectNoFaults(page);
  await page.context().close();
});

test("a job says why it waits, and a button starts it", async () => {
  const holder = await submit(
    server,
    "name: holder\nteam: vision\ngpus: 7\ntime: 4h\nrun: sleep 10000\n",
    kim,
  );
  await jobIs(server, holder, "running");
  const waits = await submit(
    server,
    "name: waits\nteam: vision\ngpus: 2\ntime: 1h\nrun: sleep 10000\n",
    kim,
  );
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/jobs/${waits}`);
  const why = page.getByRole("region", { name: "Why it waits" });
  await why.getByText(/asks for 2 GPUs/).waitFor();
  // The first one is what the server itself would change.
  await why.getByRole("button", { name: /Priority high/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText(/\$/).first().waitFor();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await stateOf(page)
    .filter({ hasText: /running/i })
    .waitFor();
  server.berth(["stop", "--now", waits]);
  server.berth(["stop", "--now", holder]);
  expectNoFaults(page);
  await page.context().close();
});

test("a job that is preempted says by whom, and one that is stopped says what was lost first", async () => {
  const low = await submit(
    server,
    "name: gives-way\nteam: vision\ngpus: 8\npriority: low\ntime: 4h\nrun: sleep 10000\n",
    kim,
  );
  await jobIs(server, low, "running");
  const page = await openPage(browser);
  await signIn(page, server.url, kim);
  await page.goto(`${server.url}/jobs/${low}`);
  await stateOf(page)
    .filter({ hasText: /running/i })
    .waitFor();
  const high = await submit(
    server,
    "name: goes-first\nteam: vision\ngpus: 8\npriority: high\ntime: 1h\nrun: sleep 10000\n",
    kim,
  );
  await jobIs(server, high, "running");
  await page
    .getByText(/preempt/i)
    .first()
    .waitFor();
  await page.getByText("goes-first").first().waitFor();
  await page.goto(`${server.url}/jobs/${high}`);
  await page.getByRole("button", { name: "Stop job" }).click();
  const confirm = page.getByRole("alertdialog");
  await confirm
    .getByText(/\$|lost|checkpoint/i)
    .first()
    .waitFor();
  await confirm.getByRole("button", { name: "Stop job" }).click();
  await stateOf(page)
    .filter({ hasText: /cancelled/i })
    .waitFor();
  server.berth(["stop", "--now", low]);
  expectNoFaults(page);
  await page.context().close();
});

test("a budget that is set in the portal acts", async () => {
  const page = await openPage(browser);
  await signIn(page, server.url, server.admin);
  await page.goto(`${server.url}/costs`);
  await page.getByRole("button", { name: "Set budget" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Queue" }).selectOption("vision");
  await dialog.getByRole("spinbutton", { name: "Limit in dollars" }).fill("0");
  await dialog.getByRole("combobox", { name: "Per" }).selectOption("month");
  await dialog.getByRole("combobox", { name: "At the limit" }).selectOption("block");
  await dialog.getByRole("button", { name: "Save budget" }).click();
  await dialog.waitFor({ state: "hidden" });
  const blocked = await submit(server, 'name: blocked\nteam: vision\ngpus: 1\nrun: "true"\n', kim);
  await page.goto(`${server.url}/jobs/${blocked}`);
  await page
    .getByRole("region", { name: "Why it waits" })
    .getByText(/budget/i)
    .first()
    .waitFor();
  server.berth(["budget", "rm", "vision"]);
  await stateOf(page).filter({ hasText: /done/i }).waitFor();
  expectNoFaults(page);
  await page.context().close();
});

test("a node is drained with its effect shown before, and takes work again", async () => {
  const runs = await submit(
    server,
    "name: on-the-node\nteam: vision\ngpus: 1\ntime: 1h\nrun: sleep 10000\n",
    kim,
  );
  await jobIs(server, runs, "running");
  const page = await openPage(browser);
  await signIn(page, server.url, server.admin);
  await page.goto(`${server.url}/cluster`);
  await page.getByRole("button", { name: "Drain box" }).first().click();
  const confirm = page.getByRole("alertdialog");
  await confirm.getByText("on-the-node").waitFor();
  await confirm.getByRole("button", { name: "Drain box" }).click();
  await until(
    "the node drains",
    async () => (await server.api("GET", "/v1/nodes/box")).body.state === "draining",
  );
  await page.getByRole("button", { name: "Uncordon box" }).first().click();
  await until(
    "it takes work",
    async () => (await server.api("GET", "/v1/nodes/box")).body.state === "ready",
  );
  server.berth(["stop", "--now", runs]);
  expectNoFaults(page);
  await page.context().close();
});

test("a viewer sees no button that it may not use, and the API refuses it anyway", async () => {
  const viewer = server.person("vera", "vision", "viewer");
  const runs = await submit(
    server,
    "name: not-for-vera\nteam: vision\ngpus: 1\ntime: 1h\nrun: sleep 10000\n",
    kim,
  );
  await jobIs(server, runs, "running");
  const page = await openPage(browser);
  await signIn(page, server.url, viewer);
  await page.goto(`${server.url}/jobs/${runs}`);
  await stateOf(page)
    .filter({ hasText: /running/i })
    .waitFor();
  for (const name of ["Stop job", "Pause job", "Clone job"]) {
    const button = page.getByRole("button", { name });
    expect((await button.count()) === 0 || (await button.isDisabled()), name).toBe(true);
  }
  await page.goto(`${server.url}/cluster`);
  await page.getByText("box").first().waitFor();
  const drain = page.getByRole("button", { name: "Drain box" });
  expect((await drain.count()) === 0 || (await drain.first().isDisabled())).toBe(true);
  const key = await sessionHeaders(page);
  expect(Object.keys(key)).toEqual(["x-berth-session-key"]);
  for (const path of [`/v1/jobs/${runs}/stop`, "/v1/nodes/box/drain"]) {
    const answer = await page.request.post(server.url + path, {
      headers: { ...key, origin: server.url },
      data: {},
    });
    expect([403, 404], path).toContain(answer.status());
  }
  expect((await server.api("GET", `/v1/jobs/${runs}`)).body.state).toBe("running");
  server.berth(["stop", "--now", runs]);
  expectNoFaults(page);
  await page.context().close();
});
