// A page that is open for ten minutes while 100,000 events come.
import type { Browser, CDPSession } from "playwright-core";
import { openPage, signIn } from "../support/browser";
import { listen } from "../support/events";
import { atLeast, atMost, exactly, figure, type Section } from "../support/report";
import { type Server, submit, until } from "../support/server";

const EVENTS = Number(process.env.LIVE_EVENTS ?? 100_000);
const SECONDS = Number(process.env.LIVE_SECONDS ?? 600);
const JOBS = 20;

export async function live(browser: Browser, server: Server): Promise<Section> {
  const jobs = await Promise.all(
    Array.from({ length: JOBS }, (_, number) =>
      submit(server, `name: live-${number}\nhold: true\nrun: "true"\n`),
    ),
  );
  const page = await openPage(browser, { width: 1440 });
  await signIn(page, server.url, server.admin);
  await page.goto(`${server.url}/jobs`);
  await page.getByText("live-0", { exact: true }).first().waitFor();
  const cdp = await page.context().newCDPSession(page);
  const count = () =>
    page.evaluate(
      () => (globalThis as never as { berthLive: { events: number; gaps: number } }).berthLive,
    );
  await page.waitForTimeout(2_000);
  // Queues change along with jobs: what a listener beside the page hears is what there was to hear.
  const told = { all: 0, jobs: 0 };
  const stop = await listen(server, (event) => {
    told.all += 1;
    if (event.includes('"kind":"job"')) told.jobs += 1;
  });
  await page.waitForTimeout(2_000);
  const before = await count();
  const heard = { ...told };
  let sent = 0;
  const begin = Date.now();
  const send = async (upTo: number) => {
    while (sent < upTo) {
      const due = begin + (SECONDS * 1000 * sent) / EVENTS;
      if (due > Date.now()) await new Promise((done) => setTimeout(done, due - Date.now()));
      const together = Array.from({ length: Math.min(8, upTo - sent) }, () => sent++);
      await Promise.all(
        together.map((number) => {
          // Each job changes each time it is its turn.
          const priority = Math.floor(number / JOBS) % 2 ? "normal" : "low";
          return server.api("PATCH", `/v1/jobs/${jobs[number % JOBS]}`, { priority });
        }),
      );
    }
  };
  await send(EVENTS / 10);
  const early = await heap(cdp);
  await send(EVENTS);
  const took = (Date.now() - begin) / 1000;
  await until(
    "all events came",
    async () => (await count()).events - before.events >= told.all - heard.all,
  ).catch(() => undefined);
  await page.waitForTimeout(2_000);
  const late = await heap(cdp);
  const after = await count();
  stop();
  const all = told.all - heard.all;
  await page.context().close();
  return {
    title: "A page that stays open",
    text: `The list of jobs is open while jobs are changed ${EVENTS} times over the API. The heap is what is left after a garbage collection, after the first tenth and at the end.`,
    rows: [
      figure("changes", EVENTS, "changes"),
      atMost("time that they took", took, "s", SECONDS * 1.01),
      atLeast(
        "events of jobs, as a listener beside the page hears them",
        told.jobs - heard.jobs,
        "events",
        EVENTS,
      ),
      figure("events of all kinds", all, "events"),
      exactly("events that the page missed", all - (after.events - before.events), "events", 0),
      exactly("gaps", after.gaps - before.gaps, "gaps", 0),
      figure("heap after the first tenth", early / 1e6, "MB"),
      figure("heap at the end", late / 1e6, "MB"),
      atMost("heap at the end beside the first tenth", late / early, "", 1.1),
    ],
  };
}

async function heap(cdp: CDPSession): Promise<number> {
  for (let time = 0; time < 3; time++) await cdp.send("HeapProfiler.collectGarbage");
  return (await cdp.send("Runtime.getHeapUsage")).usedSize;
}
