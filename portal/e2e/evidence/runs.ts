// An experiment with ten thousand runs: how soon it is seen, how soon it is all there, how it scrolls.
import type { Browser } from "playwright-core";
import { openPage, signIn } from "../support/browser";
import { atLeast, below, figure, median, type Section } from "../support/report";
import type { Server } from "../support/server";
import { logRun, makeExperiment } from "../support/tracking";

const RUNS = 10_000;
const AT_ONCE = 16;
const TIMES = 5;
const FRAMES = 120;

export async function manyRuns(browser: Browser, server: Server): Promise<Section> {
  const runs = Number(process.env.RUNS ?? RUNS);
  const experiment = await makeExperiment(server, "sweep");
  let next = 0;
  const log = async () => {
    for (let i = next++; i < runs; i = next++)
      await logRun(server, experiment, {
        name: `run-${i}`,
        params: { lr: String(10 ** -(i % 5)), layers: String(12 * (1 + (i % 4))), seed: String(i) },
        metrics: { loss: [4, 1 + (i % 97) / 97], acc: [0, (i % 89) / 89], "berth.cost": [i / 100] },
      });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, log));

  const page = await openPage(browser, { width: 1440 });
  await signIn(page, server.url, server.admin);
  const at = `${server.url}/experiments/${experiment}`;
  const first: number[] = [];
  const whole: number[] = [];
  for (let time = 0; time < TIMES; time++) {
    await page.goto("about:blank");
    await page.goto(at, { waitUntil: "commit" });
    const seen = await page.evaluate(
      (all) =>
        new Promise<{ first: number; whole: number }>((found) => {
          let rows = 0;
          const look = () => {
            if (rows === 0 && document.querySelector('a[href^="/runs/"]')) rows = performance.now();
            const said = document.querySelector("main [role=status]")?.textContent ?? "";
            if (rows > 0 && said === all) found({ first: rows, whole: performance.now() });
            else requestAnimationFrame(look);
          };
          look();
        }),
      `${runs.toLocaleString("en-US")} runs`,
    );
    first.push(seen.first);
    whole.push(seen.whole);
  }
  const frames = await page.evaluate(async (count) => {
    const grid = document.querySelector("[role=grid]") as HTMLElement;
    const scroller = grid.parentElement as HTMLElement;
    const out: number[] = [];
    let before = performance.now();
    for (let i = 0; i < count; i++) {
      // Three rows a frame: a fast turn of the wheel.
      scroller.scrollTop += 96;
      await new Promise((drawn) => requestAnimationFrame(drawn));
      const now = performance.now();
      out.push(now - before);
      before = now;
    }
    return out.sort((a, b) => a - b);
  }, FRAMES);
  await page.context().close();
  return {
    title: "A table of ten thousand runs",
    text: `An experiment has ${runs.toLocaleString("en-US")} runs with params, metrics and costs. Its address is loaded ${TIMES} times: the page shows the first rows while it fetches the others, 1,000 at a time. Then the table is scrolled by three rows a frame, ${FRAMES} times.`,
    rows: [
      atLeast("runs in the table", runs, "runs", RUNS),
      below("from the load of the address to the first rows, median", median(first), "ms", 1000),
      figure("until all runs are there, median", median(whole), "ms"),
      figure("a frame while it scrolls, median", median(frames), "ms"),
      figure("nine of ten frames, at most", frames[Math.floor(FRAMES * 0.9)] ?? 0, "ms"),
    ],
  };
}
