// Pictures of every page, of a server with a month of history: `make portal-shots`.
//
//   BERTH_URL, BERTH_TOKEN   the server, and one who may see all of it
//   PERSON_TOKEN             a user with a running job, for Home and for what a team has tracked;
//                            the same where left out
//   SHOTS                    where the pictures go; docs/portal where left out
//   ONLY, PNG=yes            some pages alone; PNG beside WebP, to look at
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect, test } from "vitest";
import { openBrowser, openPage, signIn, type Theme } from "../support/browser";
import { pages, type Stop, type Tracked } from "../support/pages";
import { type Client, clientOf } from "../support/server";
import { tellStory } from "../support/story";
import { logData, pushData } from "../support/tracking";

const env = process.env;
const url = env.BERTH_URL ?? "";
const token = env.BERTH_TOKEN ?? "";
const person = env.PERSON_TOKEN ?? token;
const out = resolve(env.SHOTS ?? join(import.meta.dirname, "../../../docs/portal"));
const WIDTHS = [1440, 1280, 390];
const THEMES: Theme[] = ["light", "dark"];
const only = env.ONLY?.split(",");

test("every page has its pictures", async () => {
  expect(url && token, "BERTH_URL and BERTH_TOKEN name the server").toBeTruthy();
  mkdirSync(out, { recursive: true });
  const all = await stops(await track());
  const home = all.filter((stop) => stop.name === "home");
  const tracked = all.filter((stop) => stop.tracked);
  const browser = await openBrowser();
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      await walk(browser, width, theme, token, [
        ...home.map((stop) => ({ ...stop, name: "home-operator" })),
        ...all.filter((stop) => stop.name !== "home" && !stop.tracked),
      ]);
      await walk(browser, width, theme, person, [...home, ...tracked]);
    }
  }
  await browser.close();
}, 3_600_000);

async function walk(browser: Browser, width: number, theme: Theme, as: string, list: Stop[]) {
  const wanted = list.filter((stop) => !only || only.includes(stop.name));
  if (wanted.length === 0) return;
  const page = await openPage(browser, { width, theme });
  await page.goto(`${url}/sign-in`);
  await page.getByRole("textbox", { name: "Token" }).waitFor();
  if (as === token && (!only || only.includes("sign-in"))) await shoot(page, "sign-in");
  await signIn(page, url, as);
  for (const { name, path, ready } of wanted) {
    await page.goto(url + path);
    await ready(page).catch((error) => console.error(`${name}: ${error}`));
    // Charts are drawn after their data came.
    await page.waitForTimeout(600);
    await shoot(page, name);
  }
  await page.context().close();

  /** WebP is a quarter of PNG, and Chromium writes it by itself. */
  async function shoot(page: Page, name: string): Promise<void> {
    const session = await page.context().newCDPSession(page);
    const formats = env.PNG === "yes" ? (["webp", "png"] as const) : (["webp"] as const);
    for (const format of formats) {
      const quality = format === "webp" ? { quality: 82 } : {};
      const { data } = await session.send("Page.captureScreenshot", { format, ...quality });
      writeFileSync(join(out, `${name}-${width}-${theme}.${format}`), Buffer.from(data, "base64"));
    }
    await session.detach();
  }
}

/** All pages, those of a job for one that runs, and what a waiting and an ended one look like. */
async function stops(tracked: Tracked): Promise<Stop[]> {
  const runs = await jobs("state=running&sort=-gpus");
  const waits = await jobs("state=pending&sort=-gpus");
  const ended = await jobs("state=done&sort=-cost");
  const all = pages(runs[0]?.id ?? "1", tracked);
  const job = all.find((stop) => stop.name === "job") as Stop;
  const of = (name: string, id: string | undefined) =>
    id === undefined ? [] : [{ ...job, name, path: `/jobs/${id}` }];
  return [
    ...all,
    ...of("job-waiting", (waits.find((one) => one.eta) ?? waits[0])?.id),
    ...of("job-ended", (ended.find((one) => one.attempts > 1) ?? ended[0])?.id),
  ];
}

/** Tracks what a team has after some weeks, beside the largest job of the person that runs. */
async function track(): Promise<Tracked> {
  const folder = mkdtempSync(join(tmpdir(), "berth-shots-"));
  const client = clientOf(url, person, folder, folder);
  const me = (await client.api("GET", "/v1/me")).body;
  const team = (me.default_team ?? me.teams[0]?.team) as string;
  const [job] = await jobs(`state=running&sort=-gpus&user=${me.user}`);
  expect(job?.run, `${me.user} has a job that runs and is tracked`).toBeTruthy();
  const run = job?.run as string;
  pushData(client, "c4@v1", team, { "part-0.txt": "a\n".repeat(4000) });
  pushData(client, "c4@v2", team, { "part-0.txt": "a\n".repeat(4000), "part-1.txt": "b\n" });
  await logData(client, run, "c4@v2", await hashOf(client, team, "c4@v2"));
  const tracked = await tellStory(client, run);
  rmSync(folder, { recursive: true });
  return tracked;
}

async function hashOf(client: Client, team: string, version: string) {
  const answer = await client.api("GET", `/v1/data/${team}/${version}`);
  return answer.body.hash as string;
}

type Listed = { id: string; eta?: string | null; attempts: number; run?: string | null };

async function jobs(query: string): Promise<Listed[]> {
  const answer = await fetch(`${url}/v1/jobs?${query}&limit=200`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return (await answer.json()).jobs;
}
