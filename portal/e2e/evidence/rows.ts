// How soon the first rows of a long list are seen.
import type { Browser } from "playwright-core";
import { openPage, signIn } from "../support/browser";
import { atLeast, below, figure, median, type Section } from "../support/report";
import type { Server } from "../support/server";

const TIMES = 11;

const JOBS = 50_000;

export async function firstRows(browser: Browser, server: Server): Promise<Section> {
  const list = await server.api("GET", "/v1/jobs?limit=1&counts=true");
  const jobs = Object.values<number>(list.body.counts).reduce((sum, count) => sum + count, 0);
  const page = await openPage(browser, { width: 1440 });
  await signIn(page, server.url, server.admin);
  const seen: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    // Another page first, loaded anew: nothing of the list is remembered.
    await page.goto(`${server.url}/admin?tab=health`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForTimeout(500);
    seen.push(
      await page.evaluate(
        () =>
          new Promise<number>((found) => {
            const link = [...document.querySelectorAll("nav a")].find((a) =>
              a.textContent?.includes("Jobs"),
            );
            const begin = performance.now();
            (link as HTMLElement).click();
            const look = () => {
              const row = document.querySelector('a[href^="/jobs/"]');
              if (row) requestAnimationFrame(() => found(performance.now() - begin));
              else requestAnimationFrame(look);
            };
            look();
          }),
      ),
    );
  }
  const loaded: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    await page.goto("about:blank");
    await page.goto(`${server.url}/jobs`, { waitUntil: "commit" });
    // The clock of the page begins with its navigation.
    loaded.push(
      await page.evaluate(
        () =>
          new Promise<number>((found) => {
            const look = () => {
              const row = document.querySelector('a[href^="/jobs/"]');
              if (row) requestAnimationFrame(() => found(performance.now()));
              else requestAnimationFrame(look);
            };
            look();
          }),
      ),
    );
  }
  const api: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    const begin = performance.now();
    await server.api("GET", "/v1/jobs?limit=200&sort=-cost");
    api.push(performance.now() - begin);
  }
  await page.context().close();
  return {
    title: "The first rows of a long list",
    text: `The server has a month of jobs. On another page the reader clicks on Jobs; the time is from the click to the frame after the first row, ${TIMES} times, each after a fresh load of that page. The load of the address itself has the scripts of the portal from the browser's cache.`,
    rows: [
      atLeast("jobs on the server", jobs, "jobs", JOBS),
      below("from the click to the first rows, median", median(seen), "ms", 300),
      figure("longest", Math.max(...seen), "ms"),
      figure("from the load of the address to the first rows, median", median(loaded), "ms"),
      figure("the server's part, sorted by cost, median", median(api), "ms"),
    ],
  };
}
