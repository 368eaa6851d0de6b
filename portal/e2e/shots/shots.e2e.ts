// Pictures of every page, of a server with a month of history: `make portal-shots`.
//
//   BERTH_URL, BERTH_TOKEN   the server
//   JOB, WAITING             a job that runs and one that waits
//   SHOTS                    where the pictures go; docs/portal where left out
//   ONLY, PNG=yes            some pages alone; PNG beside WebP, to look at
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { openBrowser, openPage, signIn, type Theme } from "../support/browser";
import { pages, type Stop } from "../support/pages";

const env = process.env;
const out = resolve(env.SHOTS ?? join(import.meta.dirname, "../../../docs/portal"));
const WIDTHS = [1440, 1280, 390];
const THEMES: Theme[] = ["light", "dark"];

test("every page has its pictures", async () => {
  const url = env.BERTH_URL ?? "";
  const token = env.BERTH_TOKEN ?? "";
  expect(url && token, "BERTH_URL and BERTH_TOKEN name the server").toBeTruthy();
  mkdirSync(out, { recursive: true });
  const stops = wanted();
  const browser = await openBrowser();
  for (const theme of THEMES) {
    for (const width of WIDTHS) {
      const page = await openPage(browser, { width, theme });
      if (!env.ONLY || env.ONLY.includes("sign-in")) {
        await page.goto(`${url}/sign-in`);
        await page.getByRole("textbox", { name: "Token" }).waitFor();
        await shoot(page, "sign-in", width, theme);
      }
      await signIn(page, url, token);
      for (const { name, path, ready } of stops) {
        await page.goto(url + path);
        await ready(page).catch((error) => console.error(`${name}: ${error}`));
        // Charts are drawn after their data came.
        await page.waitForTimeout(600);
        await shoot(page, name, width, theme);
      }
      await page.context().close();
    }
  }
  await browser.close();
}, 3_600_000);

function wanted(): Stop[] {
  const waiting = pages(env.WAITING ?? "1").find((stop) => stop.name === "job") as Stop;
  const all = [...pages(env.JOB ?? "1"), { ...waiting, name: "job-waiting" }];
  const only = env.ONLY?.split(",");
  return only ? all.filter((stop) => only.includes(stop.name)) : all;
}

/** WebP is a quarter of PNG, and Chromium writes it by itself. */
async function shoot(page: Page, name: string, width: number, theme: Theme): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const formats = env.PNG === "yes" ? (["webp", "png"] as const) : (["webp"] as const);
  for (const format of formats) {
    const quality = format === "webp" ? { quality: 82 } : {};
    const { data } = await session.send("Page.captureScreenshot", { format, ...quality } as never);
    writeFileSync(join(out, `${name}-${width}-${theme}.${format}`), Buffer.from(data, "base64"));
  }
}
